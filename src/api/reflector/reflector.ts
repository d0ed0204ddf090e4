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
import { ReflectedCopy, type ReflectedNews } from './reflector-copy.ts';
import {
  Intake,
  type ObjectCheck,
  type Reading,
  type ReadObject,
  readObject,
  wireKey,
  withoutWriters,
} from './reflector-intake.ts';
import { isAway, lacksVersion, type ReflectorPhase, recoveryOf } from './reflector-recovery.ts';
import { FailureRests, noRest, type Rest } from './reflector-rest.ts';
import { isOlderVersion, type Named, type ObjectChange, type Snapshot, storeKey } from './store.ts';
import { mayStream, streamFailed } from './stream-support.ts';
import { WatchLimits } from './watch-limits.ts';

/** The cache. */
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
  /** Validation of an object besides its name and UID. */
  readonly check?: ObjectCheck<Named<T>>;
  /**
   * The cached part of an object; all except managed fields unless given. Its metadata must be
   * kept.
   */
  readonly keep?: (object: Named<T>) => Named<T>;
  /**
   * Whether the cached objects are immutable: then they are kept and no longer watched. Evaluated
   * after each change.
   */
  readonly isFinal?: (objects: readonly Named<T>[]) => boolean;
}

const pageSize = 500;
/** A watch that ends sooner without events has failed. */
const shortestWatchMs = 1_000;
const endAnnotation = 'k8s.io/initial-events-end';

/** One connection, whose result determines the next action. */
interface Watching<T extends ApiObject> {
  readonly begunMs: number;
  /** While initial objects are received. */
  intake: Intake<T> | undefined;
  news: 'none' | 'some';
}

/**
 * Maintains a cache of API objects and follows their changes:
 *
 *     start ─> stream ─complete─> watch ─ended, cut, busy─> watch
 *                │ ^ │
 *                │ └─version expired, other failures
 *                └rejected─> list ─> watch
 *
 * The cache stays readable in every state: only a successful response removes objects. It may be
 * stopped and started again and keeps its objects meanwhile. Listeners are called after the change,
 * must not block, and do no harm when they throw.
 */
export class Reflector<T extends ApiObject> implements AsyncDisposable {
  readonly #options: ReflectorOptions<T>;
  readonly #what: string;
  readonly #reading: Reading<T>;
  readonly #copy: ReflectedCopy<T>;
  readonly #rests: FailureRests;
  #phase: ReflectorPhase = 'stream';
  /** The version of the store; empty before the first response. */
  #version = '';
  /** Whether the server does not have that version. */
  #versionLost = false;
  #final = false;
  #closed = false;
  #problem: string | undefined;
  #skipped = 0;
  #run: { readonly stop: AbortController; readonly ended: Promise<void> } | undefined;

  constructor(options: ReflectorOptions<T>) {
    this.#options = options;
    this.#what = describeQuery(options.query);
    const { check = isGood, keep = withoutWriters } = options;
    this.#reading = { check, keep };
    this.#rests = new FailureRests(options);
    const onError = (error: unknown, event: string) =>
      options.logger.error(`Listener of ${event} of ${this.#what} failed`, error);
    this.#copy = new ReflectedCopy({ clock: options.clock, what: this.#what, onError });
  }

  /** Whether all objects were read since the start. Stays true while the server is unreachable. */
  get hasSynced(): boolean {
    return this.#copy.isWhole;
  }

  /** Whether it is running. False after its objects were found immutable. */
  get isRunning(): boolean {
    return this.#run !== undefined;
  }

  /** Why the cache may be stale, for users; undefined if it is current. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** The API version of the objects. */
  get version(): string {
    return this.#version;
  }

  /** The number of invalid objects so far. */
  get skipped(): number {
    return this.#skipped;
  }

  get(name: string, namespace?: string): Named<T> | undefined {
    return this.#copy.get(storeKey(name, namespace));
  }

  /** All objects: the same list until one of them changes. */
  list(): readonly Named<T>[] {
    return this.#copy.list();
  }

  /** Called for each change. */
  onChange(listener: (change: ObjectChange<Named<T>>) => void): Disposable {
    return this.#copy.onChange(listener);
  }

  /**
   * Called with all objects, at once after a complete read and soon after changes: simultaneous
   * ones are delivered together. The first call after a start means that the set is complete, even
   * if it is empty.
   */
  onSet(listener: (objects: readonly Named<T>[]) => void): Disposable {
    return this.#copy.onSet(listener);
  }

  /** Like `onSet`, but with the changes only. */
  onNews(listener: (news: ReflectedNews<Named<T>>) => void): Disposable {
    return this.#copy.onNews(listener);
  }

  /**
   * Resolves when all objects were read since the start; rejects when the signal or the reflector
   * ends.
   */
  waitForSync(signal: AbortSignal): Promise<void> {
    return this.#copy.whole(signal);
  }

  /** Starts, also after a stop; no effect while it runs or when its objects are immutable. */
  start(): void {
    if (this.#run !== undefined || this.#final || this.#closed) return;
    this.#phase = this.#firstPhase();
    const stop = new AbortController();
    const ended = this.#follow(stop.signal)
      .catch((error) => this.#options.logger.error(`Reflector of ${this.#what} ended`, error))
      .finally(() => {
        if (this.#run?.stop === stop) this.#run = undefined;
      });
    this.#run = { stop, ended };
  }

  /** Closes requests and timers; the cache stays readable but no longer counts as synced. */
  async stop(): Promise<void> {
    if (!this.#final) this.#copy.isLeft();
    const run = this.#run;
    // At once, so that a start before the end takes effect.
    this.#run = undefined;
    run?.stop.abort(cancelledError(`The reflector of ${this.#what} was stopped`));
    await run?.ended;
  }

  /** Permanently: clears the cache. */
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
      const rest = await this.#connect(signal);
      // Rejects only when it is stopped.
      if (rest.ms > 0) await this.#rests.take(rest, signal).catch(() => {});
    }
  }

  /** One list or watch. Returns the delay before the next. */
  async #connect(signal: AbortSignal): Promise<Rest> {
    if (this.#phase === 'list') return await this.#tryList(signal);
    const { clock } = this.#options;
    const streaming = this.#phase === 'stream';
    const watching: Watching<T> = {
      begunMs: clock.monotonicMs(),
      intake: streaming ? new Intake() : undefined,
      news: 'none',
    };
    try {
      await this.#watch(watching, signal);
    } catch (error) {
      if (signal.aborted) return noRest;
      return this.#wasCut(error, watching) ? this.#ended(watching) : this.#recover(error);
    }
    return signal.aborted ? noRest : this.#ended(watching);
  }

  async #tryList(signal: AbortSignal): Promise<Rest> {
    try {
      await this.#list(signal);
      return noRest;
    } catch (error) {
      return signal.aborted ? noRest : this.#recover(error);
    }
  }

  async #list(signal: AbortSignal): Promise<void> {
    const { client, query } = this.#options;
    const version = this.#versionLost ? undefined : this.#version || '0';
    // Pages of a version other than the newest would not come from the server's memory.
    const limit = version === undefined || version === '0' ? pageSize : undefined;
    const list = await listAll<T>(client, { ...query, resourceVersion: version, limit }, signal);
    signal.throwIfAborted();
    const intake = new Intake<T>();
    const before = this.#skipped;
    for (const item of list.items) intake.take(this.#noted(readObject(item, this.#reading), before));
    this.#replace(intake.snapshot(), list.metadata.resourceVersion);
  }

  async #watch(watching: Watching<T>, signal: AbortSignal): Promise<void> {
    const { client, clock, random, query, watchSeconds = { min: 300, max: 600 } } = this.#options;
    const timeoutSeconds = watchSeconds.min + randomInt(random, watchSeconds.max - watchSeconds.min + 1);
    using limits = new WatchLimits(clock, timeoutSeconds, signal);
    if (watching.intake !== undefined) limits.expectSomething();
    const begin = watching.intake === undefined ? 'at-version' : 'initial';
    const resourceVersion = this.#versionLost || this.#version === '' ? undefined : this.#version;
    const events = client.watch<T>({ ...query, resourceVersion, timeoutSeconds, begin }, limits.signal);
    const skippedBefore = this.#skipped;
    for await (const event of events) {
      if (limits.signal.aborted) break;
      this.#take(event, watching, skippedBefore);
      if (watching.intake === undefined) limits.expectNothing();
      else limits.expectSomething();
      if (this.#final) return;
    }
    // A client may end the watch without an error when it is aborted.
    limits.signal.throwIfAborted();
    if (watching.intake !== undefined)
      throw new KubelingError(
        'API_BAD_ANSWER',
        `The watch of ${this.#what} ended before its initial objects were complete`,
      );
  }

  #take(event: WatchEvent<T>, watching: Watching<T>, skippedBefore: number): void {
    const version = event.object?.metadata?.resourceVersion ?? '';
    if (watching.intake !== undefined) {
      this.#takeIn(event, watching, skippedBefore);
      return;
    }
    const isOld = isOlderVersion(version, this.#version);
    if (event.type === 'DELETED') this.#removed(event.object, watching);
    // An object deleted long ago must not reappear.
    else if (event.type !== 'BOOKMARK' && !isOld) {
      const read = this.#noted(readObject(event.object, this.#reading), skippedBefore);
      if (read.is === 'good' && this.#copy.put(read.object)) this.#changed(watching);
    }
    if (version !== '' && version !== this.#version && !isOld) {
      this.#version = version;
      watching.news = 'some';
    }
    this.#mended();
  }

  /** The initial objects, before they are complete. */
  #takeIn(event: WatchEvent<T>, watching: Watching<T>, skippedBefore: number): void {
    const { intake } = watching;
    if (intake === undefined) return;
    if (event.type === 'BOOKMARK') {
      const { annotations, resourceVersion = '' } = event.object.metadata ?? {};
      if (annotations?.[endAnnotation] !== 'true' || resourceVersion === '') return;
      watching.intake = undefined;
      watching.news = 'some';
      this.#replace(intake.snapshot(), resourceVersion);
    } else if (event.type === 'DELETED') intake.remove(wireKey(event.object) ?? '');
    else intake.take(this.#noted(readObject(event.object, this.#reading), skippedBefore));
  }

  #removed(object: T, watching: Watching<T>): void {
    const key = wireKey(object);
    if (key === undefined)
      this.#noted({ is: 'bad', problem: 'the deleted object has no name', key }, this.#skipped);
    else if (this.#copy.remove(key, object.metadata ?? {})) this.#changed(watching);
  }

  /** Counts invalid objects; per connection only the first is logged. */
  #noted(read: ReadObject<T>, skippedBefore: number): ReadObject<T> {
    if (read.is === 'good') return read;
    this.#skipped++;
    if (this.#skipped === skippedBefore + 1)
      this.#options.logger.warn(`Skipped object of ${this.#what} as ${read.problem}`);
    return read;
  }

  #changed(watching: Watching<T>): void {
    watching.news = 'some';
    this.#settleFinal();
  }

  #replace(snapshot: Snapshot<T>, version: string): void {
    this.#version = version;
    this.#versionLost = false;
    this.#phase = 'follow';
    this.#mended();
    this.#copy.replace(snapshot);
    this.#settleFinal();
  }

  #settleFinal(): void {
    this.#final = this.#options.isFinal?.(this.#copy.list()) ?? false;
  }

  /** A connection that delivered events and was then closed counts as ended. */
  #wasCut(error: unknown, watching: Watching<T>): boolean {
    return watching.intake === undefined && isAway(error) && this.#lastedMs(watching) >= shortestWatchMs;
  }

  #lastedMs({ begunMs }: Watching<T>): number {
    return this.#options.clock.monotonicMs() - begunMs;
  }

  #ended(watching: Watching<T>): Rest {
    if (watching.news === 'some' || this.#lastedMs(watching) >= shortestWatchMs) return noRest;
    return this.#recover(
      new KubelingError('API_BAD_ANSWER', `The watch of ${this.#what} ended at once without events`),
    );
  }

  #recover(error: unknown): Rest {
    const phase = this.#phase;
    const asked = this.#versionLost || (phase === 'stream' && this.#version === '');
    const { step, wait } = recoveryOf(error, { phase, asked: asked ? 'the-newest' : 'a-version' });
    if (phase === 'stream') streamFailed(this.#options.client, this.#options.clock, error);
    if (step === 'newest') this.#versionLost = true;
    else if (step === 'list') this.#phase = 'list';
    else if (step === 'sync') this.#phase = this.#firstPhase();
    this.#troubled(error, wait);
    return wait === 'none' ? noRest : this.#rests.after(error);
  }

  /** Logged once per problem, not per attempt. An expired version is normal. */
  #troubled(error: unknown, wait: 'back-off' | 'none'): void {
    const { logger } = this.#options;
    const problem = describeError(error);
    if (wait === 'none' || lacksVersion(error)) {
      logger.v(4)?.info(`Reading ${this.#what} again`, { why: problem });
      return;
    }
    if (this.#problem === problem) return;
    this.#problem = problem;
    logger.warn(`Failed to watch ${this.#what}, retrying`, { why: problem });
  }

  #mended(): void {
    if (this.#problem === undefined) return;
    this.#problem = undefined;
    this.#options.logger.info(`Watching ${this.#what} again`);
  }
}

function isGood(): undefined {}

function describeQuery({ resource, namespace, fieldSelector, labelSelector }: ReflectedQuery): string {
  const selectors = [fieldSelector, labelSelector].filter((text) => text !== undefined && text !== '');
  const where = namespace === undefined ? '' : ` in ${namespace}`;
  return `${resource.plural}${where}${selectors.length === 0 ? '' : ` with ${selectors.join(' and ')}`}`;
}
