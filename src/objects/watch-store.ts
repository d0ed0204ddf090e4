import { type Clock, describeError, KubelingError, type Logger, withDeadline } from '../lib/index.ts';
import type { PodUid } from '../pods/index.ts';
import {
  keyOf,
  notRegistered,
  type ObjectName,
  type ReferredObject,
  type ReferredStore,
} from './referred-store.ts';

/** One object that is kept at hand, and not followed any longer once it is known never to change. */
export interface FollowedObject<T> extends AsyncDisposable {
  /** Whether the server has told what there is since the start. */
  readonly hasSynced: boolean;
  /** As last known, also while it is stopped; undefined when there is none or none was seen yet. */
  readonly current: T | undefined;
  /** Why it is not in sync, where that is known. */
  readonly problem: string | undefined;
  waitForSync(signal: AbortSignal): Promise<void>;
  /** Does nothing when it runs, or has no reason to. */
  start(): void;
  /** It may be started again after that. */
  stop(): Promise<void>;
}

export interface WatchStoreDeps<T> {
  readonly clock: Clock;
  readonly logger: Logger;
  /** How the kind is named in messages: secret, configmap. */
  readonly kind: string;
  /** Not started yet. */
  readonly follow: (object: ObjectName) => FollowedObject<T>;
  /** How often pods are synced: what is not read for five times as long is not followed any longer. */
  readonly syncFrequencyMs: number;
}

interface Entry<T> {
  readonly pods: Set<PodUid>;
  readonly followed: FollowedObject<T>;
  /** A stop that is under way; only after it a start is heard. */
  stopping: Promise<void> | undefined;
  state: 'following' | 'resting';
  lastReadMs: number;
}

/** With the server away, or with something at hand that may serve. */
const shortSyncMs = 1_000;
/** A server that is busy answers late, not never. */
const firstSyncMs = 10_000;
const sweepMs = 60_000;
const shortestIdleMs = 60_000;

/** Follows each object that some pod refers to, while it is read. */
export class WatchStore<T extends ReferredObject> implements ReferredStore<T> {
  readonly #deps: WatchStoreDeps<T>;
  readonly #entries = new Map<string, Entry<T>>();
  #ended = false;

  constructor(deps: WatchStoreDeps<T>) {
    this.#deps = deps;
  }

  add(object: ObjectName, pod: PodUid): void {
    const key = keyOf(object);
    const entry = this.#entries.get(key) ?? this.#newEntry(object);
    this.#entries.set(key, entry);
    entry.pods.add(pod);
  }

  remove(object: ObjectName, pod: PodUid): void {
    const entry = this.#entries.get(keyOf(object));
    if (entry === undefined || !entry.pods.delete(pod) || entry.pods.size > 0) return;
    this.#entries.delete(keyOf(object));
    void this.#settle(entry.followed[Symbol.asyncDispose]());
  }

  async get(object: ObjectName, signal: AbortSignal): Promise<T | undefined> {
    const entry = this.#entries.get(keyOf(object));
    if (entry === undefined) throw notRegistered(object);
    // Whether or not it succeeds: one who failed will be back, and should find the object still followed.
    entry.lastReadMs = this.#deps.clock.monotonicMs();
    const { followed } = entry;
    if (!followed.hasSynced) {
      const problem = await this.#waitForFirst(object, entry, signal);
      if (!followed.hasSynced) this.#mayServeOld(object, entry, problem ?? '');
    }
    return followed.current;
  }

  /** Answers why the server has not told of it. */
  async #waitForFirst(object: ObjectName, entry: Entry<T>, signal: AbortSignal): Promise<string | undefined> {
    const { clock, kind } = this.#deps;
    const { followed } = entry;
    const what = `sync the ${kind} ${keyOf(object)}`;
    const wait = async (ms: number) => {
      const work = (inner: AbortSignal) => this.#sync(entry, inner);
      const why = await withDeadline({ clock, ms, what }, work, signal).catch(describeError);
      signal.throwIfAborted();
      return why;
    };
    const why = await wait(shortSyncMs);
    const isHopeless = followed.problem !== undefined || followed.current !== undefined || this.#ended;
    if (followed.hasSynced || isHopeless || !this.#entries.has(keyOf(object))) return why;
    return await wait(firstSyncMs - shortSyncMs);
  }

  /** Lets objects rest that nobody reads; in the end all of them. */
  async run(signal: AbortSignal): Promise<void> {
    this.#ended = false;
    try {
      for (;;) {
        await this.#deps.clock.sleep(sweepMs, signal);
        this.#sweep();
      }
    } finally {
      this.#ended = true;
      for (const entry of this.#entries.values()) this.#rest(entry);
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

  /** Old but good is better than none: what was known before it rested serves until the server answers. */
  #mayServeOld(object: ObjectName, { followed }: Entry<T>, problem: string): void {
    if (!this.#entries.has(keyOf(object))) throw notRegistered(object);
    const { kind, logger } = this.#deps;
    if (followed.current === undefined) {
      const message = `failed to sync ${kind} cache: timed out waiting for the condition`;
      const why = followed.problem === undefined ? '' : `: ${followed.problem}`;
      throw new KubelingError('OBJECT_UNSYNCED', `${message}${why}`, { details: { object: keyOf(object) } });
    }
    const why = followed.problem ?? problem;
    const fields = { kind, object: keyOf(object), why };
    logger.warn('An object cannot be read anew, what is known of it serves', fields);
  }

  #sweep(): void {
    const idleMs = Math.max(5 * this.#deps.syncFrequencyMs, shortestIdleMs);
    const since = this.#deps.clock.monotonicMs() - idleMs;
    for (const [object, entry] of this.#entries) {
      // One whose first answer is under way is left alone: the work of the server would be for nothing.
      if (entry.state === 'resting' || !entry.followed.hasSynced || entry.lastReadMs >= since) continue;
      this.#deps.logger.v(4)?.info('Not followed any longer as nobody reads it', { object, idleMs });
      this.#rest(entry);
    }
  }

  #rest(entry: Entry<T>): void {
    entry.state = 'resting';
    entry.stopping = this.#settle(entry.followed.stop());
  }

  async #settle(work: PromiseLike<void>): Promise<void> {
    try {
      await work;
    } catch (error) {
      this.#deps.logger.error('An object cannot be left alone', error, { kind: this.#deps.kind });
    }
  }
}
