import { KubelingError } from '../lib/index.ts';
import type { ServiceClient } from '../protocols/grpc/index.ts';
import { translateError } from './errors.ts';
import {
  type Any,
  ContainerEvent,
  type Envelope,
  type EventsMethods,
  TaskEvent,
  TaskExit,
} from './gen/containerd.ts';

/**
 * A containerd event of a container or sandbox. It contains no state; it only says that the pod
 * should be relisted.
 */
export interface ContainerdEvent {
  /** Id of the sandbox or container; containerd does not distinguish them. */
  readonly containerId: string;
  /** containerd's topic, for example /tasks/exit. */
  readonly topic: string;
  /** The time of the event in milliseconds since the Unix epoch, by the clock of containerd. */
  readonly atMs: number;
}

/** The containerd namespace of CRI containers. */
const criNamespace = 'k8s.io';

const filters = ['/tasks/', '/containers/'].map((topic) => `namespace==${criNamespace},topic~=^${topic}`);

/**
 * Converts a containerd event; undefined for the exit of a command inside a container and for an
 * event without a container.
 */
export async function* readContainerdEvents(
  events: Pick<ServiceClient<EventsMethods>, 'subscribe'>,
  signal: AbortSignal,
): AsyncGenerator<ContainerdEvent> {
  try {
    for await (const envelope of events.subscribe({ filters }, { signal })) {
      const event = readEnvelope(envelope);
      if (event !== undefined) yield event;
    }
  } catch (error) {
    throw translateError('getContainerEvents', error, signal);
  }
}

function readEnvelope({ namespace, topic, event, timestamp }: Envelope): ContainerdEvent | undefined {
  if (namespace !== criNamespace || event === undefined) return undefined;
  const containerId = readableContainerOf(topic, event);
  if (containerId === undefined || containerId === '') return undefined;
  const atMs = Number(timestamp?.seconds ?? 0n) * 1_000 + Math.floor((timestamp?.nanos ?? 0) / 1e6);
  return { containerId, topic, atMs };
}

/** An event that cannot be decoded is skipped; failing would end the stream. */
function readableContainerOf(topic: string, event: Any): string | undefined {
  try {
    return containerOf(topic, event);
  } catch (error) {
    if (error instanceof KubelingError && error.code === 'PROTOBUF_MALFORMED') return undefined;
    throw error;
  }
}

function containerOf(topic: string, event: Any): string | undefined {
  if (topic === '/tasks/exit') {
    const exit = TaskExit.decode(event.value);
    return exit.id === exit.containerId ? exit.containerId : undefined;
  }
  if (topic.startsWith('/tasks/exec')) return undefined;
  if (topic.startsWith('/tasks/')) return TaskEvent.decode(event.value).containerId;
  return topic.startsWith('/containers/') ? ContainerEvent.decode(event.value).id : undefined;
}

/**
 * The topic of published test events: below /tasks/, so that they pass the filter, but no other
 * program reacts to it.
 */
const ownTopic = '/tasks/kubeling';

export async function publishContainerdEvent(
  events: Pick<ServiceClient<EventsMethods>, 'publish'>,
  containerId: string,
  signal: AbortSignal,
): Promise<void> {
  // The test event is encoded as TaskPaused, because every reader of task events can decode that
  // type.
  const event = { typeUrl: 'containerd.events.TaskPaused', value: TaskEvent.encode({ containerId }) };
  const metadata = { 'containerd-namespace': criNamespace };
  try {
    await events.publish({ topic: ownTopic, event }, { signal, metadata });
  } catch (error) {
    throw translateError('getContainerEvents', error, signal);
  }
}
