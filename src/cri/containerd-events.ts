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

/** Something happened to a container or sandbox. A hint to look; never what to believe. */
export interface ContainerdEvent {
  /** The sandbox's or container's id: containerd does not tell them apart. */
  readonly containerId: string;
  /** containerd's topic, such as /tasks/exit. */
  readonly topic: string;
  /** Milliseconds since 1970, by the runtime's clock. */
  readonly atMs: number;
}

/** The namespace in which containerd keeps everything that came over CRI. */
const criNamespace = 'k8s.io';

const filters = ['/tasks/', '/containers/'].map((topic) => `namespace==${criNamespace},topic~=^${topic}`);

/** Exits of commands run inside a container, and anything about no container at all, are left out. */
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

/** A payload we cannot read costs this hint only; ending the stream for it would cost all that follow. */
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

/** A topic of our own below that of tasks: nobody but us acts on it. */
const ownTopic = '/tasks/kubeling';

export async function publishContainerdEvent(
  events: Pick<ServiceClient<EventsMethods>, 'publish'>,
  containerId: string,
  signal: AbortSignal,
): Promise<void> {
  // The payload is one that every reader of task events can open.
  const event = { typeUrl: 'containerd.events.TaskPaused', value: TaskEvent.encode({ containerId }) };
  const metadata = { 'containerd-namespace': criNamespace };
  try {
    await events.publish({ topic: ownTopic, event }, { signal, metadata });
  } catch (error) {
    throw translateError('getContainerEvents', error, signal);
  }
}
