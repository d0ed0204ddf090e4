import type { EvictionThreshold } from '../../config/index.ts';
import { type Clock, HintLatch, LinkedController, type Logger, withDeadline } from '../../lib/index.ts';
import { describePod, isCriticalPod, type Pod, type PodEvent, type PodUid } from '../../pods/index.ts';
import {
  type Assessment,
  assessThresholds,
  defaultRoundMs,
  nextCheckMs,
  nextConditionExpiryMs,
  noPressure,
  type PressureState,
  thresholdsMet,
} from './assess-thresholds.ts';
import { diskParts, type ReclaimStep, reclaimSteps, withContainerDisk } from './disk-layout.ts';
import { type EvictionDecision, evictedReason, evictionMessage } from './eviction-message.ts';
import type { DiskLayout, EvictionStats, PodResourceUsage, StatsRequirements } from './eviction-stats.ts';
import { hasStorageLimits, overStorageLimit } from './local-storage.ts';
import { type MemoryThresholdNotifier, memoryHeadrooms } from './memory-threshold-notifier.ts';
import type { EvictionObserver } from './metrics.ts';
import { type MemoryGuard, observationsOf, type PressureCondition, resourceOf } from './observations.ts';
import { rankPods } from './rank.ts';

export interface EvictionSettings {
  readonly thresholds: readonly EvictionThreshold[];
  /** How long a condition of the node is kept after it was last seen. */
  readonly transitionMs: number;
  /** The most a pod gets to end that is evicted for a soft threshold; below 0 it has its own time. */
  readonly maxPodGraceSeconds: number;
  /** Whether pods are held to limits of what they write to the node's disk. */
  readonly localStorage: 'limited' | 'unlimited';
  readonly memoryGuard: MemoryGuard;
  /** Whether the kernel is asked to tell when memory falls short; it is only looked at unless given. */
  readonly memoryNotification?: 'kernel' | undefined;
  /** From one look at the node to the next; ten seconds unless given. */
  readonly roundMs?: number | undefined;
}

export interface EvictionDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly settings: EvictionSettings;
  readonly stats: EvictionStats;
  /** Nobody tells when memory falls short between two looks unless given. */
  readonly memoryNotifier?: MemoryThresholdNotifier | undefined;
  /** Pods that use, or will use, anything of the node. */
  readonly activePods: () => readonly Pod[];
  /** Resolves when nothing of the pod runs; rejects when that takes too long. May be asked again with less time. */
  readonly kill: (pod: Pod, kill: EvictionKill, signal: AbortSignal) => Promise<void>;
  /** Whether nothing of the pod is left on the node. */
  readonly isCleanedUp: (uid: PodUid) => boolean;
  readonly reclaim: {
    deleteAllUnusedContainers(signal: AbortSignal): Promise<void>;
    deleteUnusedImages(signal: AbortSignal): Promise<void>;
  };
  /** Removes what pods have left that are gone or evicted. */
  readonly collectGarbage: (signal: AbortSignal) => Promise<void>;
  readonly podEvent: (pod: Pod, event: PodEvent) => void;
  readonly nodeEvent: (event: Pick<PodEvent, 'type' | 'reason' | 'message'>) => void;
  readonly observer: EvictionObserver;
  /** The node has got a condition, or has one no more. */
  readonly conditionsChanged: (conditions: readonly PressureCondition[]) => void;
}

export interface EvictionKill {
  readonly graceSeconds: number;
  readonly decision: EvictionDecision;
}

type Urgency = EvictionThreshold['kind'];

interface Eviction {
  readonly pod: Pod;
  readonly decision: EvictionDecision;
  readonly annotations?: Readonly<Record<string, string>> | undefined;
  readonly graceSeconds: number;
  readonly urgency: Urgency;
}

/** What came of a round. */
interface Evicted {
  readonly pods: readonly Pod[];
  readonly urgency: Urgency;
}

/** Who is evicted at once has this long to end. */
const shortGraceSeconds = 1;
/** Of a pod that does not say. */
const usualGraceSeconds = 30;
const cleanupMs = 30_000;
const cleanupPollMs = 1_000;
/** To free what nobody uses may take long, but not for ever. */
const reclaimMs = 120_000;

/** The node's self-defence: frees what it can, then ends pods, one after another, before the kernel ends anything. */
export class EvictionManager {
  readonly #deps: EvictionDeps;
  #layout: DiskLayout | undefined;
  #thresholds: readonly EvictionThreshold[];
  #state: PressureState = noPressure;
  #conditions: readonly PressureCondition[] = [];
  /** Those that were told to end and have not yet: nothing is won by telling them again. */
  #evicting: ReadonlySet<PodUid> = new Set();
  readonly #notified: HintLatch;

  constructor(deps: EvictionDeps) {
    this.#deps = deps;
    this.#thresholds = deps.settings.thresholds;
    this.#notified = new HintLatch(deps.clock);
  }

  /** What the node is short of now, or was not long ago. */
  get conditions(): readonly PressureCondition[] {
    return this.#conditions;
  }

  /** Runs until the signal ends it. */
  async run(signal: AbortSignal): Promise<void> {
    using _ = this.#deps.memoryNotifier;
    while (!signal.aborted) {
      const evicted = await this.#tryRound(signal);
      if (signal.aborted) return;
      if (evicted === undefined) await this.#waitForNextRound(signal).catch(() => {});
      else await this.#awaitCleanup(evicted, signal).catch(() => {});
    }
  }

  async #tryRound(signal: AbortSignal): Promise<Evicted | undefined> {
    try {
      return await this.#round(signal);
    } catch (error) {
      if (!signal.aborted)
        this.#deps.logger.error('Cannot look whether the node is short of anything', error);
      return undefined;
    }
  }

  async #round(signal: AbortSignal): Promise<Evicted | undefined> {
    const layout = await this.#findLayout(signal);
    const { acting } = await this.#assess(signal);
    const pods = this.#deps.activePods();
    this.#dropTerminated(pods);
    const overLimits = await this.#evictOverLimits(pods, signal);
    if (overLimits.length > 0) return { pods: overLimits, urgency: 'hard' };
    const [threshold] = acting;
    if (threshold === undefined) return undefined;
    return await this.#reclaimOrEvict(threshold, acting, { pods, layout }, signal);
  }

  /** Nothing is done before the runtime has told where containers and images lie. */
  async #findLayout(signal: AbortSignal): Promise<DiskLayout> {
    if (this.#layout !== undefined) return this.#layout;
    const { stats, settings, logger } = this.#deps;
    const layout = await stats.layout(signal);
    this.#layout = layout;
    this.#thresholds = withContainerDisk(settings.thresholds, layout);
    logger.info('Found where images and containers lie', { layout });
    return layout;
  }

  async #assess(signal: AbortSignal): Promise<Assessment> {
    const { stats, settings, clock } = this.#deps;
    const observations = observationsOf(await stats.node(signal), settings.memoryGuard);
    const assessment = assessThresholds(this.#state, {
      thresholds: this.#thresholds,
      observations,
      transitionMs: settings.transitionMs,
      nowMs: clock.monotonicMs(),
    });
    this.#state = assessment.state;
    this.#setConditions(assessment.conditions);
    return assessment;
  }

  #setConditions(conditions: readonly PressureCondition[]): void {
    const before = this.#conditions;
    this.#conditions = conditions;
    if (before.join() === conditions.join()) return;
    this.#deps.logger.info('What the node is short of has changed', {
      before: before.join(' ') || 'nothing',
      now: conditions.join(' ') || 'nothing',
    });
    this.#deps.conditionsChanged(conditions);
  }

  async #evictOverLimits(pods: readonly Pod[], signal: AbortSignal): Promise<readonly Pod[]> {
    const { settings, observer } = this.#deps;
    if (settings.localStorage === 'unlimited') return [];
    const limited = pods.filter((pod) => this.#isEvictable(pod) && hasStorageLimits(pod));
    if (limited.length === 0) return [];
    const measures = await this.#measure(limited, {}, signal);
    const over = limited.flatMap((pod) => {
      const found = measures.get(pod.metadata.uid);
      const limit = found && overStorageLimit(pod, found);
      return limit === undefined ? [] : [{ pod, limit }];
    });
    const evictions = over.map(async ({ pod, limit }) => {
      const decision = { message: limit.message, disruption: 'not-told' } as const;
      await this.#evict({ pod, decision, graceSeconds: shortGraceSeconds, urgency: 'hard' }, signal);
      observer.evicted(limit.signal);
      return pod;
    });
    return await Promise.all(evictions);
  }

  /** A node that is short must not wait for who cannot say what pods use: of those it goes by what it knows. */
  async #measure(
    pods: readonly Pod[],
    needed: StatsRequirements,
    signal: AbortSignal,
  ): Promise<ReadonlyMap<PodUid, PodResourceUsage>> {
    const { stats, logger } = this.#deps;
    try {
      return await stats.pods(pods, needed, signal);
    } catch (error) {
      signal.throwIfAborted();
      logger.error('Cannot find out what pods use', error);
      return new Map();
    }
  }

  /** Does something about one threshold. */
  async #reclaimOrEvict(
    threshold: EvictionThreshold,
    acting: readonly EvictionThreshold[],
    { pods, layout }: { readonly pods: readonly Pod[]; readonly layout: DiskLayout },
    signal: AbortSignal,
  ): Promise<Evicted | undefined> {
    const { logger, nodeEvent, observer, clock } = this.#deps;
    const { signal: name } = threshold;
    const urgency = urgencyOf(threshold);
    const resource = resourceOf(name);
    const { observations } = this.#state;
    nodeEvent({
      type: 'Warning',
      reason: 'EvictionThresholdMet',
      message: `Attempting to reclaim ${resource}`,
    });
    if (await this.#reclaim(reclaimSteps(name, layout), signal)) {
      logger.info('The node has enough again without evicting pods', { resource, signal: name });
      return undefined;
    }
    const candidates = pods.filter((pod) => this.#isEvictable(pod));
    if (candidates.length === 0) {
      logger.warn('The node is short, but no pod can be evicted', { resource, pods: pods.length });
      return undefined;
    }
    // Older figures would have the wrong pod evicted when another has just filled the disk.
    const layersAtMs = diskParts(name, layout).includes('rootfs') ? observations.get(name)?.atMs : undefined;
    const measures = await this.#measure(candidates, { layersAtMs }, signal);
    const [pod] = rankPods(candidates, { signal: name, layout, measures });
    if (pod === undefined) return undefined;
    const nowMs = clock.now();
    for (const each of acting) {
      const { atMs } = observations.get(each.signal) ?? {};
      if (atMs !== undefined) observer.statsAge(each.signal, Math.max(0, nowMs - atMs) / 1_000);
    }
    const of = measures.get(pod.metadata.uid);
    const { message, annotations } = evictionMessage({ resource, pod, measures: of, acting, observations });
    const decision = { message, disruption: 'told' } as const;
    const graceSeconds = this.#graceOf(pod, urgency);
    await this.#evict({ pod, decision, annotations, graceSeconds, urgency }, signal);
    observer.evicted(name);
    return { pods: [pod], urgency };
  }

  /** Whether nothing is short any more, by as much as is asked for. */
  async #reclaim(steps: readonly ReclaimStep[], signal: AbortSignal): Promise<boolean> {
    if (steps.length === 0) return false;
    const { clock, logger, reclaim, stats, settings } = this.#deps;
    for (const step of steps) {
      const work = (inner: AbortSignal) =>
        step === 'dead-containers'
          ? reclaim.deleteAllUnusedContainers(inner)
          : reclaim.deleteUnusedImages(inner);
      try {
        await withDeadline({ clock, ms: reclaimMs, what: `remove ${step.replace('-', ' ')}` }, work, signal);
      } catch (error) {
        signal.throwIfAborted();
        logger.error('Cannot free all that nobody uses', error, { step });
      }
    }
    const observations = observationsOf(await stats.node(signal), settings.memoryGuard);
    return thresholdsMet(this.#thresholds, observations, 'reclaim-too').length === 0;
  }

  #graceOf({ spec }: Pod, urgency: Urgency): number {
    if (urgency === 'hard') return shortGraceSeconds;
    const { maxPodGraceSeconds: most } = this.#deps.settings;
    const { terminationGracePeriodSeconds: own = most < 0 ? usualGraceSeconds : most } = spec;
    return most < 0 ? own : Math.min(most, own);
  }

  #isEvictable(pod: Pod): boolean {
    return !isCriticalPod(pod) && !this.#evicting.has(pod.metadata.uid);
  }

  #dropTerminated(active: readonly Pod[]): void {
    const uids = new Set(active.map(({ metadata }) => metadata.uid));
    this.#evicting = new Set([...this.#evicting].filter((uid) => uids.has(uid)));
  }

  /** A pod that does not end in time is evicted all the same: it is never run again. */
  async #evict(eviction: Eviction, signal: AbortSignal): Promise<void> {
    const { logger, podEvent, kill } = this.#deps;
    const { pod, decision, annotations, graceSeconds, urgency } = eviction;
    const fields = { pod: describePod(pod), podUid: pod.metadata.uid };
    this.#evicting = new Set([...this.#evicting, pod.metadata.uid]);
    podEvent(pod, { type: 'Warning', reason: evictedReason, message: decision.message, annotations });
    logger.info('Evicting a pod', { ...fields, message: decision.message, graceSeconds });
    try {
      if (urgency === 'hard') await kill(pod, { graceSeconds, decision: decision }, signal);
      else await this.#killUnlessUrgent(pod, { graceSeconds, decision: decision }, signal);
      logger.info('The pod is evicted', fields);
    } catch (error) {
      signal.throwIfAborted();
      logger.error('An evicted pod has not ended in time', error, fields);
    }
  }

  /** A pod that takes its time must not keep the node from defending itself: when it becomes serious, it has none left. */
  async #killUnlessUrgent(pod: Pod, request: EvictionKill, signal: AbortSignal): Promise<void> {
    const { kill, logger, clock } = this.#deps;
    using slow = new LinkedController(signal);
    const ended = new HintLatch(clock);
    const slowly = kill(pod, request, slow.signal).finally(() => ended.raise());
    // Whoever waits for it looks at it below.
    slowly.catch(() => {});
    while ((await ended.wait(cleanupPollMs, signal)) === 'time') {
      if (!(await this.#isHardThresholdMet(signal))) continue;
      logger.warn('The node has become short while a pod takes its time to end', { pod: describePod(pod) });
      slow.abort(new Error('The pod is ended at once'));
      return await kill(pod, { ...request, graceSeconds: shortGraceSeconds }, signal);
    }
    await slowly;
  }

  async #isHardThresholdMet(signal: AbortSignal): Promise<boolean> {
    try {
      return (await this.#assess(signal)).acting.some((one) => urgencyOf(one) === 'hard');
    } catch {
      signal.throwIfAborted();
      return false;
    }
  }

  /** What the pods had is not free before all of them has gone. */
  async #awaitCleanup({ pods, urgency }: Evicted, signal: AbortSignal): Promise<void> {
    const { clock, isCleanedUp, logger } = this.#deps;
    const untilMs = clock.monotonicMs() + cleanupMs;
    while (clock.monotonicMs() < untilMs) {
      await clock.sleep(cleanupPollMs, signal);
      if (pods.every(({ metadata }) => isCleanedUp(metadata.uid))) return await this.#removeLeftovers(signal);
      if (urgency === 'soft' && (await this.#isHardThresholdMet(signal))) return;
    }
    logger.warn('What evicted pods had is not free yet', { pods: pods.map(describePod).join(' ') });
  }

  /** Its containers and logs take room as well, and nobody reads them. */
  async #removeLeftovers(signal: AbortSignal): Promise<void> {
    const { clock, logger, collectGarbage } = this.#deps;
    const limit = { clock, ms: cleanupMs, what: 'remove what evicted pods have left' };
    await withDeadline(limit, collectGarbage, signal).catch((error: unknown) => {
      signal.throwIfAborted();
      logger.error('Cannot remove all that evicted pods have left', error);
    });
  }

  /** Until the next round, which comes early when something is found short before, or a condition of the node is over. */
  async #waitForNextRound(signal: AbortSignal): Promise<void> {
    const { clock, stats, settings, memoryNotifier } = this.#deps;
    const { transitionMs, roundMs = defaultRoundMs } = settings;
    const nowMs = clock.monotonicMs();
    const untilMs = Math.min(nowMs + roundMs, nextConditionExpiryMs(this.#state, transitionMs, nowMs));
    let before = this.#state.observations;
    let now = before;
    this.#notified.clear();
    await memoryNotifier?.set(memoryHeadrooms(this.#thresholds, now), () => this.#onMemoryNotification());
    for (;;) {
      const leftMs = untilMs - clock.monotonicMs();
      const waitMs = Math.min(leftMs, nextCheckMs(this.#thresholds, now, before, roundMs));
      if (waitMs > 0) await this.#notified.wait(waitMs, signal);
      this.#notified.clear();
      if (clock.monotonicMs() >= untilMs || this.#layout === undefined) return;
      before = now;
      now = observationsOf(await stats.node(signal), settings.memoryGuard);
      if (this.#isNewlyMet(thresholdsMet(this.#thresholds, now, 'threshold'))) return;
    }
  }

  #onMemoryNotification(): void {
    this.#deps.logger.v(2)?.info('The kernel tells that memory falls short');
    this.#notified.raise();
  }

  #isNewlyMet(met: readonly EvictionThreshold[]): boolean {
    return met.some((one) => !this.#state.firstObserved.has(one));
  }
}

/** One that need not be crossed for any time is as good as hard. */
function urgencyOf({ gracePeriodMs }: EvictionThreshold): Urgency {
  return gracePeriodMs === 0 ? 'hard' : 'soft';
}
