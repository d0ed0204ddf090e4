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
  /** The interval of relists while events are not trusted; 1 s by default. */
  readonly relistMs?: number;
  /** The interval of relists while events are trusted; 30 s by default. */
  readonly trustedRelistMs?: number;
  /** The maximum age of the last relist for a healthy PLEG; 3 min by default. */
  readonly thresholdMs?: number;
  /** The maximum duration of listing all pods; 2 min by default. */
  readonly listMs?: number;
  /** The maximum duration of inspecting one pod; 10 s by default. */
  readonly inspectMs?: number;
}

export interface PlegOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly runtime: RuntimeLister;
  /** The pod cache to fill; a new one by default. */
  readonly cache?: PodCache | undefined;
  /** The runtime events; without them, pods are relisted every second. */
  readonly events?: EventSource | undefined;
  readonly metrics?: PlegObserver | undefined;
  readonly times?: PlegTimes | undefined;
  /**
   * Called when the runtime announced the exit of a container that it does not list yet. Only a
   * hint.
   */
  readonly exitAnnounced?: ((uid: PodUid, containerId: string) => void) | undefined;
  /**
   * Whether the pod is terminating. Its changes are relisted together when its termination ends.
   */
  readonly isTerminating?: ((uid: PodUid) => boolean) | undefined;
}

const queueCapacity = 1_000;
const maxPodRelists = 200;
const maxConcurrentRelists = 8;
const maxConcurrentInspections = 8;
/**
 * The minimum interval of relists of all pods for hints about unknown containers, which arrive in
 * bursts.
 */
const relistSpacingMs = 250;
const retryMs = 1_000;

/**
 * Pod lifecycle event generator: fills the pod cache and reports containers that started, died or
 * were removed. Runtime events trigger an immediate relist of their pod; a relist of all pods every
 * second, or every 30 seconds while events are trusted, finds what they miss.
 *
 *     events ──> hints ──> relist of one pod ───┐
 *     after a sync, for a waiter ───────^       ├──> pod cache, lifecycle events
 *     every second or 30 seconds ──> relist ────┘
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
  /** The timestamp at which each requested relist was requested, by pod. */
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

  /** The numbers of listed pods, requested relists, hints and waiters. */
  get remembered(): Readonly<Record<'pods' | 'looks' | 'hints' | 'waiting', number>> {
    const pods = this.#relister.records.size;
    return { pods, looks: this.#requests.size, hints: this.#hints.size, waiting: this.cache.waiting };
  }

  get eventTrust(): TrustState {
    return this.#trust.state;
  }

  /**
   * Why the PLEG is unhealthy, or undefined. Only relists of all pods count, because a failed
   * inspection affects one pod only.
   */
  problem(): string | undefined {
    const last = this.#relister.lastListed;
    if (last === undefined || this.cache.globalStamp === undefined) return 'pleg has yet to be successful';
    const thresholdMs = this.#options.times?.thresholdMs ?? 180_000;
    const agoMs = this.#options.clock.monotonicMs() - last.ms;
    if (agoMs <= thresholdMs) return undefined;
    return `pleg was last seen active ${formatDurationMs(agoMs)} ago; threshold is ${formatDurationMs(thresholdMs)}`;
  }

  /**
   * The UIDs of pods with the given name that have a running container, possibly one that a
   * previous kubelet process started.
   */
  runningUnder(name: string, namespace: string): readonly PodUid[] {
    return this.#relister.records.runningUnder(name, namespace);
  }

  /** Waits for the next lifecycle event. */
  nextEvent(signal: AbortSignal): Promise<PodLifecycleEvent | undefined> {
    return this.#queue.next(signal);
  }

  /** Requests a relist of the pod, which starts after this call and as soon as possible. */
  requestRelist(uid: PodUid): void {
    this.#requestPod(uid, this.#options.clock.stamp(), 0);
  }

  /**
   * Requests that the next relist inspects the pod and reports a PodSync event even without
   * changes.
   */
  requestReinspect(uid: PodUid): void {
    this.#relister.records.reinspect(uid);
    this.requestRelist(uid);
  }

  /** Relists pods until the signal is aborted. May be called only once. */
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
        this.#trust.reset('a new stream must be proven');
        this.#prover.opened();
      },
      broken: () => this.#trust.reset('the event stream broke'),
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
    this.#options.log.info('Evented PLEG health changed', { state, why });
    this.#options.metrics?.trusted(state);
    if (state === 'untrusted') this.#relists.add('all', 0);
  }

  /** Requests a relist of the pod unless a later relist of the pod is already requested. */
  #relistPod(uid: PodUid, delayMs: number): void {
    this.#requestPod(uid, Number.POSITIVE_INFINITY, delayMs);
  }

  /** Beyond this number of pods, one relist of all pods is cheaper. */
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
      // Drops a request that a later relist has served.
      if (requested === undefined || this.cache.isNewer(uid, requested)) return;
      const seen = await this.#relister.relistPod(uid, signal);
      if (seen === 'seen') this.#hints.observed(uid);
      if (seen === 'absent') this.#relistSoon();
      if (seen === 'failed' && this.#isUrgent(uid)) this.#relistPod(uid, retryMs);
    });
  }

  /** Whether the pod must be relisted before the next relist of all pods. */
  #isUrgent(uid: PodUid): boolean {
    const isUnclear = this.#relister.records.get(uid)?.reinspect === true;
    return isUnclear || this.cache.isAwaited(uid) || this.#hints.isFollowing(uid);
  }

  /**
   * Calls the work function for each due key until the signal is aborted. An internal error skips
   * one key only.
   */
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
        if (!signal.aborted) this.#options.log.error('Relist failed unexpectedly', error, { key });
      } finally {
        queue.done(key);
      }
    }
  }
}
