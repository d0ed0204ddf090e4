import {
  type Clock,
  formatDurationMs,
  type Logger,
  type Random,
  Subscription,
  WorkQueue,
} from '../lib/index.ts';
import type { PodUid } from '../pods/index.ts';
import { EventProver } from './event-prover.ts';
import { EventReader } from './event-reader.ts';
import { EventTrust, type TrustState } from './event-trust.ts';
import { HintFollower } from './hint-follower.ts';
import type { PodLifecycleEvent } from './lifecycle-events.ts';
import type { PlegObserver } from './metrics.ts';
import { PodCache } from './pod-cache.ts';
import { Relister, type RelistLimits } from './relister.ts';
import type { EventSource, RuntimeHint, RuntimeLister } from './runtime-events.ts';

export interface PlegTimes {
  /** Between looks at all pods while events cannot be relied on; 1 s unless given. */
  readonly relistMs?: number;
  /** The same while they can; 30 s unless given. */
  readonly trustedRelistMs?: number;
  /** How long ago the last listing may be for this to count as healthy; 3 min unless given. */
  readonly thresholdMs?: number;
  /** How long a look at all pods may take at most; 2 min unless given. */
  readonly listMs?: number;
  /** How long inspecting one pod may take; 10 s unless given. */
  readonly inspectMs?: number;
}

export interface PlegOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly runtime: RuntimeLister;
  /** The cache to fill; an own one unless given. */
  readonly cache?: PodCache | undefined;
  /** Without it, pods are looked at every second. */
  readonly events?: EventSource | undefined;
  readonly metrics?: PlegObserver | undefined;
  readonly times?: PlegTimes | undefined;
  /** Told of a container that is said to have ended, before the runtime shows it. A hint, and no more. */
  readonly exitAnnounced?: ((uid: PodUid, containerId: string) => void) | undefined;
  /** Whether somebody ends this pod and looks at it afterwards: what happens to it meanwhile can wait for that look. */
  readonly isTerminating?: ((uid: PodUid) => boolean) | undefined;
}

const queueCapacity = 1_000;
const maxPodRelists = 200;
const maxConcurrentRelists = 8;
const maxConcurrentInspections = 8;
/** Hints about containers nobody knows yet come in bursts. */
const relistSpacingMs = 250;
const retryMs = 1_000;

/**
 * Notices what happens to pods in the runtime: fills the pod cache, and tells of containers that started, died or were
 * removed. Events of the runtime make it look at once; a look at all pods every second, or every half minute while
 * events are shown to arrive, finds what they miss.
 *
 *     events ──> hints ──> looks at one pod ──┐
 *     after acting, somebody waits ─────^     ├──> pod cache, lifecycle events
 *     every second or half minute ──> relist ─┘
 */
export class Pleg {
  readonly cache: PodCache;
  readonly #options: PlegOptions;
  readonly #relister: Relister;
  readonly #hints: HintFollower;
  readonly #trust: EventTrust;
  readonly #reader: EventReader | undefined;
  readonly #prover: EventProver;
  readonly #queue = new Subscription<PodLifecycleEvent>({ keep: 'each', capacity: queueCapacity });
  readonly #podRelists: WorkQueue<PodUid>;
  readonly #relists: WorkQueue<'all' | 'unknown'>;
  /** When each look that waits was asked for. */
  readonly #requests = new Map<PodUid, number>();
  #lastRelistMs = Number.NEGATIVE_INFINITY;

  constructor(options: PlegOptions) {
    const { clock, random, metrics } = options;
    this.#options = options;
    this.#podRelists = new WorkQueue(clock);
    this.#relists = new WorkQueue(clock);
    this.cache = options.cache ?? new PodCache();
    this.cache.onAwaited((uid, stamp) => this.#requestPod(uid, stamp, 0));
    this.#trust = new EventTrust({
      clock,
      random,
      changed: (state, why) => this.#trustChanged(state, why),
      missed: (why) => this.#reader?.reopen(why),
    });
    this.#relister = this.#newRelister();
    this.#hints = new HintFollower({
      records: this.#relister.records,
      relistPod: (uid, delayMs) => this.#relistPod(uid, delayMs),
      relist: (delayMs) => this.#relists.add('unknown', Math.max(delayMs, this.#spacingMs())),
      isTerminating: options.isTerminating ?? (() => false),
    });
    this.#prover = new EventProver({
      clock,
      log: options.log,
      trust: this.#trust,
      provoke: options.events?.provoke,
      lastListedMs: () => this.#relister.lastListed?.ms,
      trustedRelistMs: this.#trustedRelistMs,
    });
    this.#reader = this.#newReader();
    metrics?.trusted(this.#trust.state);
  }

  /** How many pods are known, looks wait, and hints are followed. */
  get remembered(): Readonly<Record<'pods' | 'looks' | 'hints' | 'waiting', number>> {
    const pods = this.#relister.records.size;
    return { pods, looks: this.#requests.size, hints: this.#hints.size, waiting: this.cache.waiting };
  }

  get eventTrust(): TrustState {
    return this.#trust.state;
  }

  /** What is wrong, or undefined. Only listings count: a pod that cannot be inspected is that pod's trouble alone. */
  problem(): string | undefined {
    const last = this.#relister.lastListed;
    if (last === undefined || this.cache.globalStamp === undefined) return 'pleg has yet to be successful';
    const thresholdMs = this.#options.times?.thresholdMs ?? 180_000;
    const agoMs = this.#options.clock.monotonicMs() - last.ms;
    if (agoMs <= thresholdMs) return undefined;
    return `pleg was last seen active ${formatDurationMs(agoMs)} ago; threshold is ${formatDurationMs(thresholdMs)}`;
  }

  /** All pods of that name of which something runs, as far as was seen: an earlier kubelet may have left some. */
  runningUnder(name: string, namespace: string): readonly PodUid[] {
    return this.#relister.records.runningUnder(name, namespace);
  }

  /** What happened next, as soon as something has. */
  nextEvent(signal: AbortSignal): Promise<PodLifecycleEvent | undefined> {
    return this.#queue.next(signal);
  }

  /** Asks for a look at a pod that begins after this call, as soon as possible. */
  requestRelist(uid: PodUid): void {
    this.#requestPod(uid, this.#options.clock.stamp(), 0);
  }

  /** Asks for a full inspection at the next look, and for a PodSync after it even if nothing changed. */
  requestReinspect(uid: PodUid): void {
    this.#relister.records.reinspect(uid);
    this.requestRelist(uid);
  }

  /** Looks at the runtime until the signal ends it. To be called once. */
  async run(signal: AbortSignal): Promise<void> {
    this.#relists.enqueue('all', 0);
    const lookers = Array.from({ length: maxConcurrentRelists }, () => this.#podRelistLoop(signal));
    await Promise.all([
      this.#relistLoop(signal),
      ...lookers,
      ...(this.#reader === undefined ? [] : [this.#reader.run(signal), this.#prover.run(signal)]),
    ]);
    this.#podRelists.close();
    this.#relists.close();
    this.#requests.clear();
    this.#hints.clear();
    this.#trust[Symbol.dispose]();
    this.#queue.close();
  }

  #newRelister(): Relister {
    const { clock, log, runtime, metrics, times } = this.#options;
    const limits: RelistLimits = {
      listMs: times?.listMs ?? 120_000,
      inspectMs: times?.inspectMs ?? 10_000,
      inspections: maxConcurrentInspections,
    };
    return new Relister({
      clock,
      log,
      runtime,
      metrics,
      limits,
      cache: this.cache,
      deliver: (event) => this.#deliver(event),
      changed: (changes, unchangedAt) => this.#trust.changed(changes, unchangedAt),
      failed: (uid) => this.#relistPod(uid, retryMs),
    });
  }

  #newReader(): EventReader | undefined {
    const { clock, random, log, metrics, events } = this.#options;
    if (events === undefined) return undefined;
    return new EventReader({
      clock,
      random,
      log,
      metrics,
      source: events,
      received: (hint) => this.#received(hint),
      opening: () => {
        this.#trust.reset('a new stream must prove itself');
        this.#prover.opened();
      },
      broken: () => this.#trust.reset('the stream of events broke'),
    });
  }

  #deliver(event: PodLifecycleEvent): boolean {
    const isHeard = this.#queue.size < queueCapacity;
    if (isHeard) this.#queue.push(event);
    else this.#options.metrics?.discarded();
    return isHeard;
  }

  #received(hint: RuntimeHint): void {
    this.#trust.received(hint);
    this.#hints.received(hint);
    if (hint.what === 'stopped') this.#announce(hint);
  }

  #announce({ containerId, podUid }: RuntimeHint): void {
    const uid = podUid ?? this.#relister.records.ownerOf(containerId);
    if (uid !== undefined) this.#options.exitAnnounced?.(uid, containerId);
  }

  #trustChanged(state: TrustState, why: string): void {
    this.#options.log.info('Whether events of the runtime can be relied on has changed', { state, why });
    this.#options.metrics?.trusted(state);
    if (state === 'untrusted') this.#relists.add('all', 0);
  }

  /** Asks for a look that nothing but a look can serve. */
  #relistPod(uid: PodUid, delayMs: number): void {
    this.#requestPod(uid, Number.POSITIVE_INFINITY, delayMs);
  }

  /** More than a few hundred looks at single pods cost more than one at all. */
  #requestPod(uid: PodUid, stamp: number, delayMs: number): void {
    if (!this.#podRelists.has(uid) && this.#podRelists.waiting >= maxPodRelists) {
      this.#relistSoon();
      return;
    }
    this.#requests.set(uid, Math.max(stamp, this.#requests.get(uid) ?? stamp));
    this.#podRelists.add(uid, delayMs);
  }

  #relistSoon(): void {
    this.#relists.add('all', this.#spacingMs());
  }

  #spacingMs(): number {
    const sinceMs = this.#options.clock.monotonicMs() - this.#lastRelistMs;
    return Math.max(0, relistSpacingMs - sinceMs);
  }

  async #relistLoop(signal: AbortSignal): Promise<void> {
    await this.#serve(this.#relists, signal, async (why) => {
      if (why === 'unknown' && this.#hints.unknown === 0) return;
      this.#lastRelistMs = this.#options.clock.monotonicMs();
      try {
        if ((await this.#relister.relist(signal)) === 'listed') this.#hints.relisted();
      } finally {
        this.#relists.add('all', this.#periodMs());
      }
    });
  }

  #periodMs(): number {
    return this.#trust.state === 'trusted' ? this.#trustedRelistMs : (this.#options.times?.relistMs ?? 1_000);
  }

  get #trustedRelistMs(): number {
    return this.#options.times?.trustedRelistMs ?? 30_000;
  }

  async #podRelistLoop(signal: AbortSignal): Promise<void> {
    await this.#serve(this.#podRelists, signal, async (uid) => {
      const requested = this.#requests.get(uid);
      this.#requests.delete(uid);
      // A look that began after the request has served it.
      if (requested === undefined || this.cache.isNewer(uid, requested)) return;
      const seen = await this.#relister.relistPod(uid, signal);
      if (seen === 'seen') this.#hints.observed(uid);
      if (seen === 'absent') this.#relistSoon();
      if (seen === 'failed' && this.#isUrgent(uid)) this.#relistPod(uid, retryMs);
    });
  }

  /** Whether the next look at a pod cannot wait for that at all pods. */
  #isUrgent(uid: PodUid): boolean {
    const isUnclear = this.#relister.records.get(uid)?.reinspect === true;
    return isUnclear || this.cache.isAwaited(uid) || this.#hints.isFollowing(uid);
  }

  /** Does the work for each key that falls due, until the signal ends it. A bug costs one piece of work, no more. */
  async #serve<K extends string>(
    queue: WorkQueue<K>,
    signal: AbortSignal,
    work: (key: K) => Promise<void>,
  ): Promise<void> {
    while (!signal.aborted) {
      const key = await queue.next(signal).catch(() => undefined);
      if (key === undefined) return;
      try {
        await work(key);
      } catch (error) {
        if (!signal.aborted) this.#options.log.error('A look at the runtime went wrong', error, { key });
      } finally {
        queue.done(key);
      }
    }
  }
}
