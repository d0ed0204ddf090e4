import type { EvictionThreshold } from '../../config/index.ts';
import {
  amountOf,
  conditionOf,
  isMemory,
  type Observations,
  type PressureCondition,
  pressureConditions,
} from './observations.ts';

/**
 * The state of the thresholds between two evaluations, by threshold object:
 *
 *     not met ──> met (condition true) ──(after the grace period)──> acts, once per new stats
 *
 * A threshold that acted is met until the signal is above the threshold plus the minimum reclaim.
 * The condition then stays true for the transition period.
 */
export interface PressureState {
  /** The time since when each threshold has been met without interruption. */
  readonly firstObserved: ReadonlyMap<EvictionThreshold, number>;
  /** The thresholds that have acted and whose minimum reclaim is not reached yet. */
  readonly met: readonly EvictionThreshold[];
  /** The time at which each node condition was last observed. */
  readonly lastObserved: ReadonlyMap<PressureCondition, number>;
  readonly observations: Observations;
}

export const noPressure: PressureState = {
  firstObserved: new Map(),
  met: [],
  lastObserved: new Map(),
  observations: new Map(),
};

export interface AssessmentInput {
  readonly thresholds: readonly EvictionThreshold[];
  readonly observations: Observations;
  /** How long a node condition stays set after its threshold was last met. */
  readonly transitionMs: number;
  /** The current monotonic time. */
  readonly nowMs: number;
}

export interface Assessment {
  readonly state: PressureState;
  readonly conditions: readonly PressureCondition[];
  /** The thresholds to act on now, most urgent first. */
  readonly acting: readonly EvictionThreshold[];
}

/** Evaluates the thresholds against the current observations. Pure. */
export function assessThresholds(before: PressureState, input: AssessmentInput): Assessment {
  const { thresholds, observations, transitionMs, nowMs } = input;
  const crossed = new Set([
    ...thresholdsMet(thresholds, observations, 'threshold'),
    ...thresholdsMet(before.met, observations, 'reclaim-too'),
  ]);
  const firstObserved = new Map([...crossed].map((one) => [one, before.firstObserved.get(one) ?? nowMs]));
  const lastObserved = new Map(before.lastObserved);
  for (const { signal } of crossed) lastObserved.set(conditionOf(signal), nowMs);
  const met = [...crossed].filter((one) => nowMs - (firstObserved.get(one) ?? nowMs) >= one.gracePeriodMs);
  return {
    state: { firstObserved, met, lastObserved, observations },
    conditions: pressureConditions.filter((name) => {
      const seenMs = lastObserved.get(name);
      // A condition whose threshold is met now is set even if the transition period is zero.
      return seenMs !== undefined && (seenMs === nowMs || nowMs - seenMs < transitionMs);
    }),
    acting: met.filter((one) => hasNewStats(one, observations, before.observations)).toSorted(memoryFirst),
  };
}

/** Returns when the next condition expires; infinite if no set condition can expire. */
export function nextConditionExpiryMs(
  { firstObserved, lastObserved }: PressureState,
  transitionMs: number,
  nowMs: number,
): number {
  const crossed = new Set([...firstObserved.keys()].map(({ signal }) => conditionOf(signal)));
  const ends = [...lastObserved].flatMap(([name, seenMs]) =>
    crossed.has(name) ? [] : seenMs + transitionMs,
  );
  return Math.min(...ends.filter((endMs) => endMs > nowMs), Number.POSITIVE_INFINITY);
}

/**
 * Returns the thresholds that are met; with `reclaim-too`, also those whose minimum reclaim is not
 * reached yet.
 */
export function thresholdsMet(
  thresholds: readonly EvictionThreshold[],
  observations: Observations,
  against: 'threshold' | 'reclaim-too',
): readonly EvictionThreshold[] {
  return thresholds.filter(({ signal, value, minimumReclaim }) => {
    const left = observations.get(signal);
    if (left === undefined) return false;
    const reclaim =
      against === 'reclaim-too' && minimumReclaim !== undefined ? amountOf(minimumReclaim, left.capacity) : 0;
    return left.available < amountOf(value, left.capacity) + reclaim;
  });
}

/**
 * Whether the stats are new: only one pod is evicted per observation. The clock may have been set
 * back, so any other timestamp counts as new.
 */
function hasNewStats({ signal }: EvictionThreshold, now: Observations, before: Observations): boolean {
  return now.get(signal) !== undefined && now.get(signal)?.atMs !== before.get(signal)?.atMs;
}

/**
 * Sorts thresholds by urgency: memory first, because the OOM killer does not rank pods; hard
 * thresholds before soft ones.
 */
function memoryFirst(a: EvictionThreshold, b: EvictionThreshold): number {
  return urgency(a) - urgency(b);
}

function urgency({ signal, kind }: EvictionThreshold): number {
  return (isMemory(signal) ? 0 : 2) + (kind === 'hard' ? 0 : 1);
}

/** The default interval between evaluations of the thresholds. */
export const defaultRoundMs = 10_000;
const nearThresholdCheckMs = 1_000;
/**
 * Memory is near a threshold while the available memory above the threshold is less than the
 * threshold itself, or less than this share of the capacity.
 */
const nearShare = 0.05;

/**
 * Returns when to evaluate the thresholds again: after the normal interval, or earlier if a signal
 * is near its threshold or would reach it at the current rate, because the kernel sends no
 * notification for most thresholds.
 */
export function nextCheckMs(
  thresholds: readonly EvictionThreshold[],
  now: Observations,
  before: Observations,
  roundMs = defaultRoundMs,
): number {
  const isNear = thresholds.some(({ signal, value }) => {
    const left = now.get(signal);
    if (left === undefined) return false;
    const amount = amountOf(value, left.capacity);
    const room = left.available - amount;
    if (isMemory(signal) && room < Math.max(amount, left.capacity * nearShare)) return true;
    const last = before.get(signal);
    const elapsedMs = last === undefined ? 0 : left.atMs - last.atMs;
    if (last === undefined || elapsedMs <= 0) return false;
    return ((last.available - left.available) / elapsedMs) * roundMs > room;
  });
  return isNear ? Math.min(nearThresholdCheckMs, roundMs) : roundMs;
}
