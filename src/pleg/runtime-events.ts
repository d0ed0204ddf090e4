import type { ContainerdEvent, ContainerEventResponse, CriClient } from '../cri/index.ts';
import { isKind, KubelingError } from '../lib/index.ts';
import type { ObservedPod, PodUid, RuntimePod } from '../pods/index.ts';
import { podUid } from '../pods/index.ts';

const criKinds: Readonly<Record<ContainerEventResponse['containerEventType'], RuntimeHint['what']>> = {
  CONTAINER_CREATED_EVENT: 'created',
  CONTAINER_STARTED_EVENT: 'started',
  CONTAINER_STOPPED_EVENT: 'stopped',
  CONTAINER_DELETED_EVENT: 'removed',
  UNRECOGNIZED: 'other',
};

const containerdKinds: ReadonlyMap<string, RuntimeHint['what']> = new Map([
  ['/containers/create', 'created'],
  ['/tasks/start', 'started'],
  ['/tasks/exit', 'stopped'],
  ['/tasks/delete', 'stopped'],
  ['/tasks/oom', 'other'],
  ['/containers/delete', 'removed'],
]);

/**
 * containerd sends the deletion event right before its CRI lists the exit, possibly long after the
 * exit itself.
 */
const showing: ReadonlyMap<string, RuntimeHint['shows']> = new Map([
  ['/tasks/exit', 'after-another-hint'],
  ['/tasks/delete', 'any-moment'],
] as const);

/**
 * The container ID in events that are published only to prove that events arrive; see
 * `proofContainerId`.
 */
const proofPrefix = 'kubeling-proof-';

/**
 * The container ID in events that are published only to prove that events arrive; no container has
 * it.
 */
export function proofContainerId(unique: string): string {
  return `${proofPrefix}${unique}`;
}

/**
 * Reads events from the CRI, or from containerd's own service when the runtime has no CRI events.
 * Only the latter can be provoked: `publish` sends an event about `proofContainerId`.
 */
export function runtimeEvents(
  cri: Pick<CriClient, 'getContainerEvents' | 'containerdEvents'>,
  publish?: (signal: AbortSignal) => Promise<void>,
): EventSource {
  let reading: 'cri' | 'containerd' = 'cri';
  async function* events(signal: AbortSignal): AsyncGenerator<RuntimeHint> {
    try {
      reading = 'cri';
      for await (const event of cri.getContainerEvents({}, signal)) yield criHint(event);
      return;
    } catch (error) {
      if (!isKind(error, 'Unsupported')) throw error;
    }
    reading = 'containerd';
    for await (const event of cri.containerdEvents(signal)) yield containerdHint(event);
  }
  if (publish === undefined) return { events };
  const provoke = async (signal: AbortSignal) => {
    if (reading === 'containerd') return await publish(signal);
    throw new KubelingError('CRI_UNSUPPORTED', 'Cannot provoke an event as the CRI has no call for it');
  };
  return { events, provoke };
}

function criHint(event: ContainerEventResponse): RuntimeHint {
  const uid = event.podSandboxStatus?.metadata?.uid;
  return {
    containerId: event.containerId,
    podUid: uid === undefined || uid === '' ? undefined : podUid(uid),
    what: criKinds[event.containerEventType],
    atMs: event.createdAt > 0n ? Number(event.createdAt / 1_000_000n) : undefined,
  };
}

function containerdHint({ containerId, topic, atMs }: ContainerdEvent): RuntimeHint {
  if (containerId.startsWith(proofPrefix)) return { containerId, what: 'proof', atMs };
  const shows = showing.get(topic);
  const what = containerdKinds.get(topic) ?? 'other';
  return { containerId, what, ...(shows === undefined ? {} : { shows }), atMs };
}

/** The container runtime as the PLEG uses it. Each call may fail; results are immutable. */
export interface RuntimeLister {
  /** Lists all pods with a sandbox or container, running or not. */
  listPods(signal: AbortSignal): Promise<readonly RuntimePod[]>;
  /** Lists one pod; undefined when the runtime has no container or sandbox of it. */
  listPod(uid: PodUid, signal: AbortSignal): Promise<RuntimePod | undefined>;
  /** The details of a pod, at least as new as the listing. */
  observe(pod: RuntimePod, signal: AbortSignal): Promise<ObservedPod>;
}

/** A runtime event of a container or sandbox. It is only a hint to relist its pod. */
export interface RuntimeHint {
  /** The ID of a container or a sandbox. */
  readonly containerId: string;
  /**
   * The UID of the pod when the runtime reports it; otherwise the pod is found by the container.
   */
  readonly podUid?: PodUid | undefined;
  /** What the event announces; `proof` is the event that `provoke` caused, about no container. */
  readonly what: 'created' | 'started' | 'stopped' | 'removed' | 'other' | 'proof';
  /**
   * `any-moment` means that the runtime will list the change soon, so that frequent relists are
   * useful. `after-another-hint` means that the runtime sends another hint before it lists the
   * change, so that no relist is needed until then.
   */
  readonly shows?: 'any-moment' | 'after-another-hint' | undefined;
  /** The time of the event in milliseconds since the Unix epoch, by the runtime's clock. */
  readonly atMs?: number | undefined;
}

export interface EventSource {
  /**
   * The stream of runtime events. It ends or throws when the connection breaks, and can be opened
   * again. Throws Unsupported when the runtime has no events.
   */
  events(signal: AbortSignal): AsyncIterable<RuntimeHint>;
  /**
   * Makes the runtime send a harmless event that arrives through `events` as a `proof`. Without
   * this method only regular events prove that events arrive.
   */
  readonly provoke?: ((signal: AbortSignal) => Promise<void>) | undefined;
}
