import { type Clock, describeError, KubelingError, type Logger, withDeadline } from '../lib/index.ts';
import type { PodUid } from '../pods/index.ts';
import {
  notRegistered,
  type ObjectName,
  objectNameKey,
  type ReferredObject,
  type ReferredStore,
} from './referred-store.ts';

/** One cached object; its watch ends when the object is immutable. */
export interface FollowedObject<T> extends AsyncDisposable {
  /** Whether the API server has delivered the initial state since the watch was started. */
  readonly hasSynced: boolean;
  /**
   * The last delivered object, also while the watch is stopped; undefined when the object does not
   * exist or was not read yet.
   */
  readonly current: T | undefined;
  /** Why the cached object is not in sync; undefined when no problem was reported. */
  readonly problem: string | undefined;
  waitForSync(signal: AbortSignal): Promise<void>;
  /** Starts the watch; does nothing when it runs or is not needed. */
  start(): void;
  /** Stops the watch, which can be started again. */
  stop(): Promise<void>;
}

export interface WatchStoreDeps<T> {
  readonly clock: Clock;
  readonly logger: Logger;
  /** The name of the kind in messages: secret, configmap. */
  readonly kind: string;
  /** Creates a watch without starting it. */
  readonly follow: (object: ObjectName) => FollowedObject<T>;
  /**
   * The interval of pod syncs: an object that is not read for five intervals is no longer watched.
   */
  readonly syncFrequencyMs: number;
}

interface Entry<T> {
  readonly pods: Set<PodUid>;
  readonly followed: FollowedObject<T>;
  /** Resolves when a watch that is being stopped has ended; a new watch starts only then. */
  stopping: Promise<void> | undefined;
  state: 'following' | 'resting';
  lastReadMs: number;
}

/** The time limit of a read when the API server is unavailable or a cached object can be served. */
const shortSyncMs = 1_000;
/** The time limit of a read from a busy API server, which responds late. */
const firstSyncMs = 10_000;
const sweepMs = 60_000;
const shortestIdleMs = 60_000;

/** Watches each object to which a pod refers, as long as the object is read. */
export class WatchStore<T extends ReferredObject> implements ReferredStore<T> {
  readonly #deps: WatchStoreDeps<T>;
  readonly #entries = new Map<string, Entry<T>>();
  #ended = false;

  constructor(deps: WatchStoreDeps<T>) {
    this.#deps = deps;
  }

  add(object: ObjectName, pod: PodUid): void {
    const key = objectNameKey(object);
    const entry = this.#entries.get(key) ?? this.#newEntry(object);
    this.#entries.set(key, entry);
    entry.pods.add(pod);
  }

  remove(object: ObjectName, pod: PodUid): void {
    const entry = this.#entries.get(objectNameKey(object));
    if (entry === undefined || !entry.pods.delete(pod) || entry.pods.size > 0) return;
    this.#entries.delete(objectNameKey(object));
    void this.#waitFor(entry.followed[Symbol.asyncDispose]());
  }

  async get(object: ObjectName, signal: AbortSignal): Promise<T | undefined> {
    const entry = this.#entries.get(objectNameKey(object));
    if (entry === undefined) throw notRegistered(object);
    // The time of the last read is updated after failures, too: the reader retries, and the object
    // should still be watched then.
    entry.lastReadMs = this.#deps.clock.monotonicMs();
    const { followed } = entry;
    if (!followed.hasSynced) {
      const problem = await this.#waitForFirst(object, entry, signal);
      if (!followed.hasSynced) this.#mayServeStale(object, entry, problem ?? '');
    }
    return followed.current;
  }

  /** Waits for the first response; returns why the API server has not delivered the object. */
  async #waitForFirst(object: ObjectName, entry: Entry<T>, signal: AbortSignal): Promise<string | undefined> {
    const { clock, kind } = this.#deps;
    const { followed } = entry;
    const what = `sync the ${kind} ${objectNameKey(object)}`;
    const wait = async (ms: number) => {
      const work = (inner: AbortSignal) => this.#sync(entry, inner);
      const why = await withDeadline({ clock, ms, what }, work, signal).catch(describeError);
      signal.throwIfAborted();
      return why;
    };
    const why = await wait(shortSyncMs);
    const isHopeless = followed.problem !== undefined || followed.current !== undefined || this.#ended;
    if (followed.hasSynced || isHopeless || !this.#entries.has(objectNameKey(object))) return why;
    return await wait(firstSyncMs - shortSyncMs);
  }

  /** Stops the watches of objects that are not read any more; at shutdown all of them. */
  async run(signal: AbortSignal): Promise<void> {
    this.#ended = false;
    try {
      for (;;) {
        await this.#deps.clock.sleep(sweepMs, signal);
        this.#sweep();
      }
    } finally {
      this.#ended = true;
      for (const entry of this.#entries.values()) this.#stopWatching(entry);
      await Promise.all(Array.from(this.#entries.values(), ({ stopping }) => stopping));
    }
  }

  #newEntry(object: ObjectName): Entry<T> {
    const followed = this.#deps.follow(object);
    const lastReadMs = this.#deps.clock.monotonicMs();
    if (!this.#ended) followed.start();
    const state = this.#ended ? 'resting' : 'following';
    return { pods: new Set(), followed, stopping: undefined, state, lastReadMs };
  }

  async #sync(entry: Entry<T>, signal: AbortSignal): Promise<undefined> {
    await entry.stopping;
    if (!this.#ended && !signal.aborted) {
      entry.followed.start();
      entry.state = 'following';
    }
    await entry.followed.waitForSync(signal);
  }

  /**
   * While the API server does not respond, the last known object is served, because a stale object
   * is better than none.
   */
  #mayServeStale(object: ObjectName, { followed }: Entry<T>, problem: string): void {
    if (!this.#entries.has(objectNameKey(object))) throw notRegistered(object);
    const { kind, logger } = this.#deps;
    if (followed.current === undefined) {
      const message = `failed to sync ${kind} cache: timed out waiting for the condition`;
      const why = followed.problem === undefined ? '' : `: ${followed.problem}`;
      throw new KubelingError('OBJECT_UNSYNCED', `${message}${why}`, {
        details: { object: objectNameKey(object) },
      });
    }
    const why = followed.problem ?? problem;
    const fields = { kind, object: objectNameKey(object), why };
    logger.warn('Failed to refresh object, serving the cached version', fields);
  }

  #sweep(): void {
    const idleMs = Math.max(5 * this.#deps.syncFrequencyMs, shortestIdleMs);
    const since = this.#deps.clock.monotonicMs() - idleMs;
    for (const [object, entry] of this.#entries) {
      // A watch that waits for its first response is not stopped: the API server's work would be
      // lost.
      if (entry.state === 'resting' || !entry.followed.hasSynced || entry.lastReadMs >= since) continue;
      this.#deps.logger.v(4)?.info('Stopped watch of object that is not read', { object, idleMs });
      this.#stopWatching(entry);
    }
  }

  #stopWatching(entry: Entry<T>): void {
    entry.state = 'resting';
    entry.stopping = this.#waitFor(entry.followed.stop());
  }

  async #waitFor(work: PromiseLike<void>): Promise<void> {
    try {
      await work;
    } catch (error) {
      this.#deps.logger.error('Failed to stop watch', error, { kind: this.#deps.kind });
    }
  }
}
