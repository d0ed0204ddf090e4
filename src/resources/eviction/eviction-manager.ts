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
  /** How long a node condition stays set after its threshold was last met. */
  readonly transitionMs: number;
  /**
   * The maximum grace period of an evicted pod for a soft threshold; negative for the grace period
   * of the pod's spec.
   */
  readonly maxPodGraceSeconds: number;
  /** Whether the local storage limits of pods are enforced. */
  readonly localStorage: 'limited' | 'unlimited';
  readonly memoryGuard: MemoryGuard;
  /** `kernel` enables memory notifications of the kernel; undefined means polling only. */
  readonly memoryNotification?: 'kernel' | undefined;
  /** The interval between evaluations of the thresholds; ten seconds by default. */
  readonly roundMs?: number | undefined;
}

export interface EvictionDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly settings: EvictionSettings;
  readonly stats: EvictionStats;
  /** Notifies when memory falls below a threshold; if undefined, memory is only polled. */
  readonly memoryNotifier?: MemoryThresholdNotifier | undefined;
  /** The pods that use or will use resources of the node. */
  readonly activePods: () => readonly Pod[];
  /**
   * Resolves when no container of the pod runs; rejects on a timeout. May be called again with a
   * shorter grace period.
   */
  readonly kill: (pod: Pod, kill: EvictionKill, signal: AbortSignal) => Promise<void>;
  /** Whether all resources of the evicted pod are cleaned up. */
  readonly isCleanedUp: (uid: PodUid) => boolean;
  readonly reclaim: {
    deleteAllUnusedContainers(signal: AbortSignal): Promise<void>;
    deleteUnusedImages(signal: AbortSignal): Promise<void>;
  };
  /** Removes the leftovers of deleted and evicted pods: containers and logs. */
  readonly collectGarbage: (signal: AbortSignal) => Promise<void>;
  readonly podEvent: (pod: Pod, event: PodEvent) => void;
  readonly nodeEvent: (event: Pick<PodEvent, 'type' | 'reason' | 'message'>) => void;
  readonly observer: EvictionObserver;
  /** Called when the node conditions have changed. */
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

/** The pods evicted in one evaluation. */
interface Evicted {
  readonly pods: readonly Pod[];
  readonly urgency: Urgency;
}

/** The grace period of pods evicted for a hard threshold or a storage limit. */
const shortGraceSeconds = 1;
/** The default termination grace period of a pod. */
const usualGraceSeconds = 30;
const cleanupMs = 30_000;
const cleanupPollMs = 1_000;
/** The deadline of one step to reclaim resources. */
const reclaimMs = 120_000;

/**
 * Protects the node under resource pressure: reclaims unused resources, then evicts pods one by one
 * before the kernel's OOM killer acts.
 */
export class EvictionManager {
  readonly #deps: EvictionDeps;
  #layout: DiskLayout | undefined;
  #thresholds: readonly EvictionThreshold[];
  #state: PressureState = noPressure;
  #conditions: readonly PressureCondition[] = [];
  /** The UIDs of evicted pods that are still terminating; they are not evicted again. */
  #evicting: ReadonlySet<PodUid> = new Set();
  readonly #notified: HintLatch;

  constructor(deps: EvictionDeps) {
    this.#deps = deps;
    this.#thresholds = deps.settings.thresholds;
    this.#notified = new HintLatch(deps.clock);
  }

  /** The current pressure conditions of the node. */
  get conditions(): readonly PressureCondition[] {
    return this.#conditions;
  }

  /** Evaluates the thresholds periodically. Resolves when the signal is aborted. */
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
      if (!signal.aborted) this.#deps.logger.error('Failed to check eviction thresholds', error);
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

  /** Nothing is evicted before the runtime has reported its file systems. */
  async #findLayout(signal: AbortSignal): Promise<DiskLayout> {
    if (this.#layout !== undefined) return this.#layout;
    const { stats, settings, logger } = this.#deps;
    const layout = await stats.layout(signal);
    this.#layout = layout;
    this.#thresholds = withContainerDisk(settings.thresholds, layout);
    logger.info('Detected image and container file systems', { layout });
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
    this.#deps.logger.info('Node pressure conditions changed', {
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
      const decision = { message: limit.message, disruption: 'unreported' } as const;
      await this.#evict({ pod, decision, graceSeconds: shortGraceSeconds, urgency: 'hard' }, signal);
      observer.evicted(limit.signal);
      return pod;
    });
    return await Promise.all(evictions);
  }

  /** Pod stats may be unavailable: the eviction must not wait for them. */
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
      logger.error('Failed to read pod stats for eviction', error);
      return new Map();
    }
  }

  /** Acts on one threshold: reclaims unused resources, then evicts the first ranked pod. */
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
      logger.info('Reclaimed enough resources without evicting pods', { resource, signal: name });
      return undefined;
    }
    const candidates = pods.filter((pod) => this.#isEvictable(pod));
    if (candidates.length === 0) {
      logger.warn('No pod can be evicted under resource pressure', { resource, pods: pods.length });
      return undefined;
    }
    // Requests new layer sizes: with stale sizes, the wrong pod would be evicted after another pod
    // has just filled the disk.
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
    const decision = { message, disruption: 'reported' } as const;
    const graceSeconds = this.#graceOf(pod, urgency);
    await this.#evict({ pod, decision, annotations, graceSeconds, urgency }, signal);
    observer.evicted(name);
    return { pods: [pod], urgency };
  }

  /** Reclaims unused resources; returns whether no threshold is met afterwards. */
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
        logger.error('Failed to reclaim unused resources', error, { step });
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

  /**
   * Evicts the pod. A pod that does not terminate in time still counts as evicted: it is never
   * started again.
   */
  async #evict(eviction: Eviction, signal: AbortSignal): Promise<void> {
    const { logger, podEvent, kill } = this.#deps;
    const { pod, decision, annotations, graceSeconds, urgency } = eviction;
    const fields = { pod: describePod(pod), podUid: pod.metadata.uid };
    this.#evicting = new Set([...this.#evicting, pod.metadata.uid]);
    podEvent(pod, { type: 'Warning', reason: evictedReason, message: decision.message, annotations });
    logger.info('Evicting pod', { ...fields, message: decision.message, graceSeconds });
    try {
      if (urgency === 'hard') await kill(pod, { graceSeconds, decision: decision }, signal);
      else await this.#killUnlessUrgent(pod, { graceSeconds, decision: decision }, signal);
      logger.info('Evicted pod', fields);
    } catch (error) {
      signal.throwIfAborted();
      logger.error('Evicted pod did not terminate in time', error, fields);
    }
  }

  /**
   * Kills the pod with the grace period for a soft threshold, which is shortened when a hard
   * threshold is met.
   */
  async #killUnlessUrgent(pod: Pod, request: EvictionKill, signal: AbortSignal): Promise<void> {
    const { kill, logger, clock } = this.#deps;
    using slow = new LinkedController(signal);
    const ended = new HintLatch(clock);
    const slowly = kill(pod, request, slow.signal).finally(() => ended.raise());
    // Prevents an unhandled rejection while the loop below runs; `await slowly` after the loop
    // throws the error.
    slowly.catch(() => {});
    while ((await ended.wait(cleanupPollMs, signal)) === 'time') {
      if (!(await this.#isHardThresholdMet(signal))) continue;
      logger.warn('Hard threshold met while an evicted pod terminates, shortening its grace period', {
        pod: describePod(pod),
      });
      slow.abort(new Error('The grace period was shortened'));
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

  /** Waits for the clean-up of evicted pods, because only then their resources are free. */
  async #awaitCleanup({ pods, urgency }: Evicted, signal: AbortSignal): Promise<void> {
    const { clock, isCleanedUp, logger } = this.#deps;
    const untilMs = clock.monotonicMs() + cleanupMs;
    while (clock.monotonicMs() < untilMs) {
      await clock.sleep(cleanupPollMs, signal);
      if (pods.every(({ metadata }) => isCleanedUp(metadata.uid))) return await this.#removeLeftovers(signal);
      if (urgency === 'soft' && (await this.#isHardThresholdMet(signal))) return;
    }
    logger.warn('Timed out waiting for the clean-up of evicted pods', {
      pods: pods.map(describePod).join(' '),
    });
  }

  /** Removes the containers and logs of evicted pods, which also use disk space. */
  async #removeLeftovers(signal: AbortSignal): Promise<void> {
    const { clock, logger, collectGarbage } = this.#deps;
    const limit = { clock, ms: cleanupMs, what: 'remove the leftovers of evicted pods' };
    await withDeadline(limit, collectGarbage, signal).catch((error: unknown) => {
      signal.throwIfAborted();
      logger.error('Failed to remove the leftovers of evicted pods', error);
    });
  }

  /**
   * Waits until the next evaluation, which starts early when a threshold is met or a condition
   * expires.
   */
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
    this.#deps.logger.v(2)?.info('Received memory notification of the kernel');
    this.#notified.raise();
  }

  #isNewlyMet(met: readonly EvictionThreshold[]): boolean {
    return met.some((one) => !this.#state.firstObserved.has(one));
  }
}

/** A soft threshold without a grace period is treated as a hard one. */
function urgencyOf({ gracePeriodMs }: EvictionThreshold): Urgency {
  return gracePeriodMs === 0 ? 'hard' : 'soft';
}
