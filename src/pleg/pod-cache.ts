import { onAbort } from '../lib/index.ts';
import type { ObservedPod, PodUid } from '../pods/index.ts';

/** How a look at a pod ended. */
export type Observation =
  | { readonly kind: 'seen'; readonly pod: ObservedPod }
  | { readonly kind: 'failed'; readonly error: unknown };

interface Entry {
  readonly observation: Observation;
  /** What the last look that did not fail saw. */
  readonly lastSeen: ObservedPod | undefined;
  readonly modified: number;
  /** When the pod was last looked at by itself, changed or not. */
  readonly observed: number;
}

interface Waiter {
  readonly stamp: number;
  readonly release: (look: Observation) => void;
}

const never = Number.NEGATIVE_INFINITY;

/**
 * What the runtime last said of each pod. Every stamp is taken before the runtime is asked, so that what is newer than
 * a stamp was true after it. A pod that is not here is one the runtime has nothing of.
 */
export class PodCache {
  readonly #entries = new Map<PodUid, Entry>();
  readonly #waiters = new Map<PodUid, Set<Waiter>>();
  #awaited: (uid: PodUid, stamp: number) => void = () => {};
  #global = never;

  /** `listener` is called whenever a caller begins to wait for an observation of a pod newer than the stamp. */
  onAwaited(listener: (uid: PodUid, stamp: number) => void): void {
    this.#awaited = listener;
  }

  /** Everything in here is newer than this; undefined before all pods were looked at for the first time. */
  get globalStamp(): number | undefined {
    return this.#global === never ? undefined : this.#global;
  }

  get size(): number {
    return this.#entries.size;
  }

  get waiting(): number {
    return this.#waiters.size;
  }

  /** Throws if the last look at the pod failed. */
  get(uid: PodUid): ObservedPod {
    return outcomeOf(this.#observationOf(uid));
  }

  /** What was last seen of the pod, even if later looks failed. */
  lastSeen(uid: PodUid): ObservedPod | undefined {
    return this.#entries.get(uid)?.lastSeen;
  }

  /** All pods the runtime has something of, as last seen. */
  all(): readonly ObservedPod[] {
    return [...this.#entries.values()].flatMap(({ lastSeen }) => lastSeen ?? []);
  }

  isAwaited(uid: PodUid): boolean {
    return this.#waiters.has(uid);
  }

  /** Whether what is here is from a look that began after the stamp. */
  isNewer(uid: PodUid, stamp: number): boolean {
    const entry = this.#entries.get(uid);
    return (
      this.#global > stamp || (entry !== undefined && (entry.modified > stamp || entry.observed > stamp))
    );
  }

  /** Waits for a look at the pod that began after the stamp; rejects as `get` throws. */
  async getNewerThan(uid: PodUid, stamp: number, signal: AbortSignal): Promise<ObservedPod> {
    signal.throwIfAborted();
    if (this.isNewer(uid, stamp)) return this.get(uid);
    return outcomeOf(await this.#wait(uid, stamp, signal));
  }

  /** Answers whether it was taken: what is newer stays. */
  set(uid: PodUid, look: Observation, stamp: number): boolean {
    const before = this.#entries.get(uid);
    if (before !== undefined && before.modified > stamp) return false;
    const lastSeen = look.kind === 'seen' ? look.pod : before?.lastSeen;
    const observed = Math.max(stamp, before?.observed ?? never);
    this.#entries.set(uid, { observation: look, lastSeen, modified: stamp, observed });
    this.#release(uid);
    return true;
  }

  /** The pod was looked at and is still what is known of it. */
  setObserved(uid: PodUid, stamp: number): void {
    const entry = this.#entries.get(uid);
    if (entry === undefined || entry.observed >= stamp) return;
    this.#entries.set(uid, { ...entry, observed: stamp });
    this.#release(uid);
  }

  /** The runtime has nothing of the pod any more. Who waits for news of it is released by the global stamp. */
  delete(uid: PodUid): void {
    this.#entries.delete(uid);
  }

  /** All pods were looked at, by looks that began after the stamp. To be told after all of them are in. */
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
