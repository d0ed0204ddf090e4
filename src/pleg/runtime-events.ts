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

/** The deletion is sent right before containerd's CRI shows the exit, which may be long after the exit itself. */
const showing: ReadonlyMap<string, RuntimeHint['shows']> = new Map([
  ['/tasks/exit', 'after-another-hint'],
  ['/tasks/delete', 'any-moment'],
] as const);

/** What an event published to prove that events arrive is about; see `proofContainerId`. */
const proofPrefix = 'kubeling-proof-';

/** A name for an event to be published as a proof: it belongs to no container, and whoever reads it knows. */
export function proofContainerId(unique: string): string {
  return `${proofPrefix}${unique}`;
}

/**
 * Events come from CRI where the runtime has them there, and from containerd's own service where it has not. An event
 * can be provoked on the latter only: `publish` has containerd send one about `proofContainerId`.
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
    throw new KubelingError('CRI_UNSUPPORTED', 'Cannot provoke an event as CRI has no call for it');
  };
  return { events, provoke };
}

export function criHint(event: ContainerEventResponse): RuntimeHint {
  const uid = event.podSandboxStatus?.metadata?.uid;
  return {
    containerId: event.containerId,
    podUid: uid === undefined || uid === '' ? undefined : podUid(uid),
    what: criKinds[event.containerEventType],
    atMs: event.createdAt > 0n ? Number(event.createdAt / 1_000_000n) : undefined,
  };
}

export function containerdHint({ containerId, topic, atMs }: ContainerdEvent): RuntimeHint {
  if (containerId.startsWith(proofPrefix)) return { containerId, what: 'proof', atMs };
  const shows = showing.get(topic);
  const what = containerdKinds.get(topic) ?? 'other';
  return { containerId, what, ...(shows === undefined ? {} : { shows }), atMs };
}

/** What the generator needs of the runtime. Each call may fail; what it answers is never changed afterwards. */
export interface RuntimeLister {
  /** All pods the runtime has anything of, running or not. */
  listPods(signal: AbortSignal): Promise<readonly RuntimePod[]>;
  /** The same of one pod; undefined if the runtime has nothing of it. */
  listPod(uid: PodUid, signal: AbortSignal): Promise<RuntimePod | undefined>;
  /** All about one pod, asked for now: at least as new as the listing it is based on. */
  observe(pod: RuntimePod, signal: AbortSignal): Promise<ObservedPod>;
}

/**
 * Something happened to a container or sandbox, so that its pod is worth a look. What happened is never believed: it
 * only tells whether a look has already seen it.
 */
export interface RuntimeHint {
  /** Of a container or a sandbox. */
  readonly containerId: string;
  /** If the runtime says so; otherwise it is found by the container. */
  readonly podUid?: PodUid | undefined;
  /** `proof` is the answer to `provoke` and about no container at all. */
  readonly what: 'created' | 'started' | 'stopped' | 'removed' | 'other' | 'proof';
  /**
   * Given when a look will show it any moment now, so that looking again and again is worth its cost, or when another
   * hint comes right before it shows, so that there is no need to look until then.
   */
  readonly shows?: 'any-moment' | 'after-another-hint' | undefined;
  /** When it happened, in milliseconds since 1970 by the runtime's clock. */
  readonly atMs?: number | undefined;
}

export interface EventSource {
  /** Ends or throws when the stream breaks; may be called again then. Throws Unsupported if there is no such stream. */
  events(signal: AbortSignal): AsyncIterable<RuntimeHint>;
  /**
   * Makes the runtime send an event that harms nothing and comes back through `events` as a `proof`. Without it only
   * what happens anyway shows whether events arrive.
   */
  readonly provoke?: ((signal: AbortSignal) => Promise<void>) | undefined;
}
