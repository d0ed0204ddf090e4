import type { ObservedPod, PodUid, RuntimePod } from '../pods/index.ts';

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
