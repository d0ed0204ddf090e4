import { onAbort } from '../lib/index.ts';
import type { ObservedPod, PodUid } from '../pods/index.ts';

/** The result of observing a pod. */
export type Observation =
  | { readonly kind: 'seen'; readonly pod: ObservedPod }
  | { readonly kind: 'failed'; readonly error: unknown };

interface Entry {
  readonly observation: Observation;
  /** The last successful observation of the pod. */
  readonly lastSeen: ObservedPod | undefined;
  readonly modified: number;
  /** The start timestamp of the last relist of the pod, with or without changes. */
  readonly observed: number;
}

interface Waiter {
  readonly stamp: number;
  readonly release: (look: Observation) => void;
}

const never = Number.NEGATIVE_INFINITY;

/**
 * The last observation of each pod. The timestamp of an observation is taken before the runtime is
 * called, so an observation reflects a state after any older timestamp. A missing entry means that
 * the runtime has no container or sandbox of the pod.
 */
export class PodCache {
  readonly #entries = new Map<PodUid, Entry>();
  readonly #waiters = new Map<PodUid, Set<Waiter>>();
  #awaited: (uid: PodUid, stamp: number) => void = () => {};
  #global = never;

  /**
   * `listener` is called when a caller starts to wait for an observation newer than the timestamp.
   */
  onAwaited(listener: (uid: PodUid, stamp: number) => void): void {
    this.#awaited = listener;
  }

  /** Every entry is newer than this timestamp; undefined before the first relist of all pods. */
  get globalStamp(): number | undefined {
    return this.#global === never ? undefined : this.#global;
  }

  get size(): number {
    return this.#entries.size;
  }

  get waiting(): number {
    return this.#waiters.size;
  }

  /** The last observation of the pod. Throws when it failed. */
  get(uid: PodUid): ObservedPod {
    return outcomeOf(this.#observationOf(uid));
  }

  /** The last successful observation of the pod, even after failed ones. */
  lastObserved(uid: PodUid): ObservedPod | undefined {
    return this.#entries.get(uid)?.lastSeen;
  }

  /** The last successful observations of all pods. */
  all(): readonly ObservedPod[] {
    return [...this.#entries.values()].flatMap(({ lastSeen }) => lastSeen ?? []);
  }

  isAwaited(uid: PodUid): boolean {
    return this.#waiters.has(uid);
  }

  /** Whether the cached observation started after the timestamp. */
  isNewer(uid: PodUid, stamp: number): boolean {
    const entry = this.#entries.get(uid);
    return (
      this.#global > stamp || (entry !== undefined && (entry.modified > stamp || entry.observed > stamp))
    );
  }

  /** Waits for an observation that started after the timestamp; rejects when it failed. */
  async getNewerThan(uid: PodUid, stamp: number, signal: AbortSignal): Promise<ObservedPod> {
    signal.throwIfAborted();
    if (this.isNewer(uid, stamp)) return this.get(uid);
    return outcomeOf(await this.#wait(uid, stamp, signal));
  }

  /** Stores an observation; returns false if a newer one is already stored. */
  set(uid: PodUid, look: Observation, stamp: number): boolean {
    const before = this.#entries.get(uid);
    if (before !== undefined && before.modified > stamp) return false;
    const lastSeen = look.kind === 'seen' ? look.pod : before?.lastSeen;
    const observed = Math.max(stamp, before?.observed ?? never);
    this.#entries.set(uid, { observation: look, lastSeen, modified: stamp, observed });
    this.#release(uid);
    return true;
  }

  /** Records that the pod was relisted without changes. */
  setObserved(uid: PodUid, stamp: number): void {
    const entry = this.#entries.get(uid);
    if (entry === undefined || entry.observed >= stamp) return;
    this.#entries.set(uid, { ...entry, observed: stamp });
    this.#release(uid);
  }

  /**
   * Records that the runtime has no container or sandbox of the pod. Does not release the waiters
   * of the pod: `setGlobal` does so after a relist of all pods.
   */
  delete(uid: PodUid): void {
    this.#entries.delete(uid);
  }

  /** Called with the timestamp of a relist of all pods after all its entries are stored. */
  setGlobal(stamp: number): void {
    this.#global = Math.max(this.#global, stamp);
    for (const uid of [...this.#waiters.keys()]) this.#release(uid);
  }

  #observationOf(uid: PodUid): Observation {
    return this.#entries.get(uid)?.observation ?? { kind: 'seen', pod: nothingOf(uid) };
  }

  #wait(uid: PodUid, stamp: number, signal: AbortSignal): Promise<Observation> {
    return new Promise<Observation>((resolve, reject) => {
      const waiters = this.#waiters.get(uid) ?? new Set();
      const leave = () => {
        waiters.delete(waiter);
        if (waiters.size === 0 && this.#waiters.get(uid) === waiters) this.#waiters.delete(uid);
      };
      const link = onAbort(signal, (reason) => {
        leave();
        reject(reason);
      });
      const release = (look: Observation) => {
        link[Symbol.dispose]();
        leave();
        resolve(look);
      };
      const waiter: Waiter = { stamp, release };
      waiters.add(waiter);
      this.#waiters.set(uid, waiters);
      this.#awaited(uid, stamp);
    });
  }

  #release(uid: PodUid): void {
    for (const waiter of [...(this.#waiters.get(uid) ?? [])]) {
      if (this.isNewer(uid, waiter.stamp)) waiter.release(this.#observationOf(uid));
    }
  }
}

function outcomeOf(look: Observation): ObservedPod {
  if (look.kind === 'failed') throw look.error;
  return look.pod;
}

function nothingOf(uid: PodUid): ObservedPod {
  return { uid, name: '', namespace: '', ips: [], sandboxes: [], containers: [] };
}
