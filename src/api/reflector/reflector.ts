import {
  type Clock,
  cancelledError,
  describeError,
  KubelingError,
  type Logger,
  type Random,
  randomInt,
} from '../../lib/index.ts';
import type { ApiClient, ApiObject, WatchEvent } from '../client/client.ts';
import type { Collection } from '../client/resource.ts';
import { listAll } from './list-all.ts';
import {
  InitialObjects,
  type ObjectCheck,
  type Reading,
  type ReadObject,
  readObject,
  wireKey,
  withoutWriters,
} from './received-objects.ts';
import { noDelay, ReflectorBackoff, type RetryDelay } from './reflector-backoff.ts';
import { ReflectorCache, type ReflectorUpdate } from './reflector-cache.ts';
import { isServerUnavailable, lacksVersion, type ReflectorPhase, recoveryOf } from './reflector-recovery.ts';
import { isOlderVersion, type Named, type ObjectChange, type Snapshot, storeKey } from './store.ts';
import { mayStream, streamFailed } from './stream-support.ts';
import { WatchLimits } from './watch-limits.ts';

/** Which objects a reflector caches. */
export interface ReflectedQuery extends Collection {
  readonly fieldSelector?: string | undefined;
  readonly labelSelector?: string | undefined;
}

export interface ReflectorOptions<T extends ApiObject> {
  readonly client: Pick<ApiClient, 'list' | 'watch' | 'onReturn'>;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly query: ReflectedQuery;
  /** The requested duration of a watch; 300 to 600 seconds unless given. */
  readonly watchSeconds?: { readonly min: number; readonly max: number };
  /** Checks an object beyond its name and UID; returns the problem of an invalid object. */
  readonly check?: ObjectCheck<Named<T>>;
  /**
   * Returns the part of an object to be cached; by default all except managed fields. The metadata
   * must be preserved.
   */
  readonly keep?: (object: Named<T>) => Named<T>;
  /**
   * Returns whether the cached objects are immutable, so that they need no watch. Evaluated after
   * each change.
   */
  readonly isFinal?: (objects: readonly Named<T>[]) => boolean;
}

const pageSize = 500;
/** A watch that ends sooner than this without events counts as failed. */
const shortestWatchMs = 1_000;
const endAnnotation = 'k8s.io/initial-events-end';

/** A single list or watch request, whose result determines the next action. */
interface WatchAttempt<T extends ApiObject> {
  readonly startedMs: number;
  /** The initial objects; undefined once they are complete. */
  initial: InitialObjects<T> | undefined;
  progress: 'none' | 'some';
}

/**
 * Maintains a cache of API objects and follows their changes:
 *
 *     start ─> stream
 *     stream ─complete─> watch
 *     stream ─rejected─> list ─> watch
 *     watch ─ended, connection closed, server busy─> watch
 *     watch ─version expired, other failures─> stream
 *
 * The cache stays readable in every state, and only a successful response removes objects. The
 * reflector may be stopped and restarted; its objects stay cached. Listeners are called after a
 * change and must not block; an exception in a listener is logged.
 */
export class Reflector<T extends ApiObject> implements AsyncDisposable {
  readonly #options: ReflectorOptions<T>;
  readonly #description: string;
  readonly #reading: Reading<T>;
  readonly #copy: ReflectorCache<T>;
  readonly #backoff: ReflectorBackoff;
  #phase: ReflectorPhase = 'stream';
  /** The resource version of the cache; empty before the first response. */
  #version = '';
  /** Whether the server no longer has the resource version of the cache. */
  #versionLost = false;
  #final = false;
  #closed = false;
  #problem: string | undefined;
  #skipped = 0;
  #run: { readonly stop: AbortController; readonly done: Promise<void> } | undefined;

  constructor(options: ReflectorOptions<T>) {
    this.#options = options;
    this.#description = describeQuery(options.query);
    const { check = isGood, keep = withoutWriters } = options;
    this.#reading = { check, keep };
    this.#backoff = new ReflectorBackoff(options);
    const onError = (error: unknown, event: string) =>
      options.logger.error(`Listener of ${event} of ${this.#description} failed`, error);
    this.#copy = new ReflectorCache({ clock: options.clock, what: this.#description, onError });
  }

  /**
   * Whether all objects were read since the start of the reflector. Stays true while the server is
   * unreachable.
   */
  get hasSynced(): boolean {
    return this.#copy.isComplete;
  }

  /**
   * Whether the reflector is running. Also false after it has ended because its objects are
   * immutable.
   */
  get isRunning(): boolean {
    return this.#run !== undefined;
  }

  /** Why the cache may be stale, in words for users; undefined if the cache is current. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** The resource version of the cache. */
  get version(): string {
    return this.#version;
  }

  /** The number of invalid objects skipped so far. */
  get skipped(): number {
    return this.#skipped;
  }

  get(name: string, namespace?: string): Named<T> | undefined {
    return this.#copy.get(storeKey(name, namespace));
  }

  /** Returns all objects: the same array until one of them changes. */
  list(): readonly Named<T>[] {
    return this.#copy.list();
  }

  /** Calls the listener for each changed object. */
  onChange(listener: (change: ObjectChange<Named<T>>) => void): Disposable {
    return this.#copy.onChange(listener);
  }

  /**
   * Calls the listener with all objects: immediately after a complete read, and shortly after
   * changes, so that simultaneous ones are reported together. The first call after a start means
   * that the set is complete, even if it is empty.
   */
  onSet(listener: (objects: readonly Named<T>[]) => void): Disposable {
    return this.#copy.onSet(listener);
  }

  /**
   * Calls the listener with all objects after a complete read, and with the changed objects after
   * later changes.
   */
  onUpdate(listener: (news: ReflectorUpdate<Named<T>>) => void): Disposable {
    return this.#copy.onUpdate(listener);
  }

  /**
   * Resolves when all objects were read since the start; rejects when the signal aborts or the
   * reflector is disposed.
   */
  waitForSync(signal: AbortSignal): Promise<void> {
    return this.#copy.waitUntilComplete(signal);
  }

  /**
   * Starts the reflector, also after a stop. No effect while it runs or when its objects are
   * immutable.
   */
  start(): void {
    if (this.#run !== undefined || this.#final || this.#closed) return;
    this.#phase = this.#firstPhase();
    const stop = new AbortController();
    const done = this.#follow(stop.signal)
      .catch((error) => this.#options.logger.error(`Reflector of ${this.#description} ended`, error))
      .finally(() => {
        if (this.#run?.stop === stop) this.#run = undefined;
      });
    this.#run = { stop, done };
  }

  /** Cancels requests and timers. The cache stays readable but no longer counts as synced. */
  async stop(): Promise<void> {
    if (!this.#final) this.#copy.markIncomplete();
    const run = this.#run;
    // `#run` is cleared before the run has ended, so that a `start` in the meantime takes effect.
    this.#run = undefined;
    run?.stop.abort(cancelledError(`The reflector of ${this.#description} was stopped`));
    await run?.done;
  }

  /** Stops the reflector permanently and clears the cache. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    await this.stop();
    this.#copy[Symbol.dispose]();
  }

  #firstPhase(): ReflectorPhase {
    const { client, clock } = this.#options;
    return mayStream(client, clock) ? 'stream' : 'list';
  }

  async #follow(signal: AbortSignal): Promise<void> {
    while (!signal.aborted && !this.#final) {
      const delay = await this.#connect(signal);
      // The wait rejects only when the reflector is stopped.
      if (delay.ms > 0) await this.#backoff.wait(delay, signal).catch(() => {});
    }
  }

  /** Makes one list or watch request, and returns the delay before the next one. */
  async #connect(signal: AbortSignal): Promise<RetryDelay> {
    if (this.#phase === 'list') return await this.#tryList(signal);
    const { clock } = this.#options;
    const streaming = this.#phase === 'stream';
    const attempt: WatchAttempt<T> = {
      startedMs: clock.monotonicMs(),
      initial: streaming ? new InitialObjects() : undefined,
      progress: 'none',
    };
    try {
      await this.#watch(attempt, signal);
    } catch (error) {
      if (signal.aborted) return noDelay;
      return this.#isClosedByServer(error, attempt) ? this.#afterEnd(attempt) : this.#recover(error);
    }
    return signal.aborted ? noDelay : this.#afterEnd(attempt);
  }

  async #tryList(signal: AbortSignal): Promise<RetryDelay> {
    try {
      await this.#list(signal);
      return noDelay;
    } catch (error) {
      return signal.aborted ? noDelay : this.#recover(error);
    }
  }

  async #list(signal: AbortSignal): Promise<void> {
    const { client, query } = this.#options;
    const version = this.#versionLost ? undefined : this.#version || '0';
    // Requests pages only for the newest version or '0': the server would read pages of any other
    // version from etcd instead of its cache.
    const limit = version === undefined || version === '0' ? pageSize : undefined;
    const list = await listAll<T>(client, { ...query, resourceVersion: version, limit }, signal);
    signal.throwIfAborted();
    const initial = new InitialObjects<T>();
    const before = this.#skipped;
    for (const item of list.items) initial.add(this.#countInvalid(readObject(item, this.#reading), before));
    this.#replace(initial.snapshot(), list.metadata.resourceVersion);
  }

  async #watch(watching: WatchAttempt<T>, signal: AbortSignal): Promise<void> {
    const { client, clock, random, query, watchSeconds = { min: 300, max: 600 } } = this.#options;
    const timeoutSeconds = watchSeconds.min + randomInt(random, watchSeconds.max - watchSeconds.min + 1);
    using limits = new WatchLimits(clock, timeoutSeconds, signal);
    if (watching.initial !== undefined) limits.expectSomething();
    const begin = watching.initial === undefined ? 'at-version' : 'initial';
    const resourceVersion = this.#versionLost || this.#version === '' ? undefined : this.#version;
    const events = client.watch<T>({ ...query, resourceVersion, timeoutSeconds, begin }, limits.signal);
    const skippedBefore = this.#skipped;
    for await (const event of events) {
      if (limits.signal.aborted) break;
      this.#receive(event, watching, skippedBefore);
      if (watching.initial === undefined) limits.expectNothing();
      else limits.expectSomething();
      if (this.#final) return;
    }
    // A client may end the events of an aborted watch without an error, so the signal is checked
    // here.
    limits.signal.throwIfAborted();
    if (watching.initial !== undefined)
      throw new KubelingError(
        'API_BAD_ANSWER',
        `The watch of ${this.#description} ended before its initial objects were complete`,
      );
  }

  #receive(event: WatchEvent<T>, watching: WatchAttempt<T>, skippedBefore: number): void {
    const version = event.object?.metadata?.resourceVersion ?? '';
    if (watching.initial !== undefined) {
      this.#receiveInitial(event, watching, skippedBefore);
      return;
    }
    const isOld = isOlderVersion(version, this.#version);
    if (event.type === 'DELETED') this.#removed(event.object, watching);
    // Ignores old events, which could restore an object that has been deleted in the meantime.
    else if (event.type !== 'BOOKMARK' && !isOld) {
      const read = this.#countInvalid(readObject(event.object, this.#reading), skippedBefore);
      if (read.is === 'good' && this.#copy.put(read.object)) this.#changed(watching);
    }
    if (version !== '' && version !== this.#version && !isOld) {
      this.#version = version;
      watching.progress = 'some';
    }
    this.#reportRecovery();
  }

  /** Handles an event of the initial set. */
  #receiveInitial(event: WatchEvent<T>, watching: WatchAttempt<T>, skippedBefore: number): void {
    const { initial } = watching;
    if (initial === undefined) return;
    if (event.type === 'BOOKMARK') {
      const { annotations, resourceVersion = '' } = event.object.metadata ?? {};
      if (annotations?.[endAnnotation] !== 'true' || resourceVersion === '') return;
      watching.initial = undefined;
      watching.progress = 'some';
      this.#replace(initial.snapshot(), resourceVersion);
    } else if (event.type === 'DELETED') initial.remove(wireKey(event.object) ?? '');
    else initial.add(this.#countInvalid(readObject(event.object, this.#reading), skippedBefore));
  }

  #removed(object: T, watching: WatchAttempt<T>): void {
    const key = wireKey(object);
    if (key === undefined)
      this.#countInvalid({ is: 'bad', problem: 'the deleted object has no name', key }, this.#skipped);
    else if (this.#copy.remove(key, object.metadata ?? {})) this.#changed(watching);
  }

  /** Counts invalid objects, and logs the first one of each connection. */
  #countInvalid(read: ReadObject<T>, skippedBefore: number): ReadObject<T> {
    if (read.is === 'good') return read;
    this.#skipped++;
    if (this.#skipped === skippedBefore + 1)
      this.#options.logger.warn(`Skipped object of ${this.#description} as ${read.problem}`);
    return read;
  }

  #changed(watching: WatchAttempt<T>): void {
    watching.progress = 'some';
    this.#updateFinal();
  }

  #replace(snapshot: Snapshot<T>, version: string): void {
    this.#version = version;
    this.#versionLost = false;
    this.#phase = 'follow';
    this.#reportRecovery();
    this.#copy.replace(snapshot);
    this.#updateFinal();
  }

  #updateFinal(): void {
    this.#final = this.#options.isFinal?.(this.#copy.list()) ?? false;
  }

  /**
   * Whether a connection broke after it delivered events, which counts as a regular end of the
   * watch.
   */
  #isClosedByServer(error: unknown, watching: WatchAttempt<T>): boolean {
    return (
      watching.initial === undefined &&
      isServerUnavailable(error) &&
      this.#durationMs(watching) >= shortestWatchMs
    );
  }

  #durationMs({ startedMs }: WatchAttempt<T>): number {
    return this.#options.clock.monotonicMs() - startedMs;
  }

  #afterEnd(watching: WatchAttempt<T>): RetryDelay {
    if (watching.progress === 'some' || this.#durationMs(watching) >= shortestWatchMs) return noDelay;
    return this.#recover(
      new KubelingError('API_BAD_ANSWER', `The watch of ${this.#description} ended at once without events`),
    );
  }

  #recover(error: unknown): RetryDelay {
    const phase = this.#phase;
    const newest = this.#versionLost || (phase === 'stream' && this.#version === '');
    const { action, wait } = recoveryOf(error, { phase, version: newest ? 'the-newest' : 'a-version' });
    if (phase === 'stream') streamFailed(this.#options.client, this.#options.clock, error);
    if (action === 'newest') this.#versionLost = true;
    else if (action === 'list') this.#phase = 'list';
    else if (action === 'sync') this.#phase = this.#firstPhase();
    this.#reportFailure(error, wait);
    return wait === 'none' ? noDelay : this.#backoff.after(error);
  }

  /** Logs each problem once, not per attempt. An expired version is not a problem. */
  #reportFailure(error: unknown, wait: 'back-off' | 'none'): void {
    const { logger } = this.#options;
    const problem = describeError(error);
    if (wait === 'none' || lacksVersion(error)) {
      logger.v(4)?.info(`Reading ${this.#description} again`, { why: problem });
      return;
    }
    if (this.#problem === problem) return;
    this.#problem = problem;
    logger.warn(`Failed to watch ${this.#description}, retrying`, { why: problem });
  }

  #reportRecovery(): void {
    if (this.#problem === undefined) return;
    this.#problem = undefined;
    this.#options.logger.info(`Watching ${this.#description} again`);
  }
}

function isGood(): undefined {}

function describeQuery({ resource, namespace, fieldSelector, labelSelector }: ReflectedQuery): string {
  const selectors = [fieldSelector, labelSelector].filter((text) => text !== undefined && text !== '');
  const where = namespace === undefined ? '' : ` in ${namespace}`;
  return `${resource.plural}${where}${selectors.length === 0 ? '' : ` with ${selectors.join(' and ')}`}`;
}
