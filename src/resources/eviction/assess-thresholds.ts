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
 * The state of the thresholds between rounds. The threshold objects are the keys: they are created
 * once.
 *
 *     below ──> observed (condition true) ──grace──> met ──> acts, once per new stats
 *                   ^ │
 *                   └── above threshold + reclaim ────┘ (condition stays true for the transition
 *                   period)
 */
export interface PressureState {
  /** Since when each threshold has been met without interruption. */
  readonly firstObserved: ReadonlyMap<EvictionThreshold, number>;
  /** The thresholds that acted and whose minimum reclaim is not reached yet. */
  readonly met: readonly EvictionThreshold[];
  /** When each condition was last observed. */
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
  /** How long a condition stays set after it was last observed. */
  readonly transitionMs: number;
  /** Monotonic. */
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
      // A condition observed now is set even if the transition period is zero.
      return seenMs !== undefined && (seenMs === nowMs || nowMs - seenMs < transitionMs);
    }),
    acting: met.filter((one) => hasNewStats(one, observations, before.observations)).toSorted(memoryFirst),
  };
}

/** Returns when the next condition expires; infinite if all conditions are still observed. */
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

/** Returns the thresholds that are met, or whose minimum reclaim is not reached. */
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
 * A pod is evicted only once per observation. The clock may have been set back, so any other
 * timestamp counts as new.
 */
function hasNewStats({ signal }: EvictionThreshold, now: Observations, before: Observations): boolean {
  return now.get(signal) !== undefined && now.get(signal)?.atMs !== before.get(signal)?.atMs;
}

/** Memory first, because the OOM killer does not rank pods. Hard thresholds before soft ones. */
function memoryFirst(a: EvictionThreshold, b: EvictionThreshold): number {
  return urgency(a) - urgency(b);
}

function urgency({ signal, kind }: EvictionThreshold): number {
  return (isMemory(signal) ? 0 : 2) + (kind === 'hard' ? 0 : 1);
}

/** The default interval of the rounds. */
export const defaultRoundMs = 10_000;
const nearThresholdCheckMs = 1_000;
/**
 * Memory is near a threshold while the margin is below the threshold itself or this share of the
 * capacity.
 */
const nearShare = 0.05;

/**
 * Returns when to check again: at the next round, or earlier if a signal is near its threshold or
 * approaches it at the current rate. No notification exists for this.
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
