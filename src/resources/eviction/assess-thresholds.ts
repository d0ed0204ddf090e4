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
 * What is remembered of thresholds from round to round. The thresholds themselves are the keys: they are made once.
 *
 *     below ──> observed (condition true) ──grace──> met ──> acts, while its figures are new
 *                   ^                                 │
 *                   └── above threshold + reclaim ────┘   (condition stays true for the transition period)
 */
export interface PressureState {
  /** Since when each threshold has been crossed without a break. */
  readonly firstObserved: ReadonlyMap<EvictionThreshold, number>;
  /** Those that acted and are not resolved by as much as they ask for. */
  readonly met: readonly EvictionThreshold[];
  /** When each condition was last seen. */
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
  /** How long a condition is kept after it was last seen. */
  readonly transitionMs: number;
  /** Monotonic. */
  readonly nowMs: number;
}

export interface Assessment {
  readonly state: PressureState;
  readonly conditions: readonly PressureCondition[];
  /** What is to be done something about now, the most urgent first. */
  readonly acting: readonly EvictionThreshold[];
}

/** What follows from what is left of the node now. Pure. */
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
      // What is seen now is told however short it is kept.
      return seenMs !== undefined && (seenMs === nowMs || nowMs - seenMs < transitionMs);
    }),
    acting: met.filter((one) => hasNewStats(one, observations, before.observations)).toSorted(memoryFirst),
  };
}

/** When the next condition is over that nothing is short for any more; never, when all of them are still to be seen. */
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

/** Those of them that are crossed, or would have to be resolved by more than they are. */
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

/** Nobody is evicted twice for the same figures. They may be from before the clock was set: any other time is news. */
function hasNewStats({ signal }: EvictionThreshold, now: Observations, before: Observations): boolean {
  return now.get(signal) !== undefined && now.get(signal)?.atMs !== before.get(signal)?.atMs;
}

/** Too little memory ends processes at random; all else can wait for it. Hard thresholds go before soft ones. */
function memoryFirst(a: EvictionThreshold, b: EvictionThreshold): number {
  return urgency(a) - urgency(b);
}

function urgency({ signal, kind }: EvictionThreshold): number {
  return (isMemory(signal) ? 0 : 2) + (kind === 'hard' ? 0 : 1);
}

/** From one round to the next, where nothing else is asked for. */
export const defaultRoundMs = 10_000;
const nearThresholdCheckMs = 1_000;
/** Memory goes fast: it is nearly short while as much again as the threshold, or this share of all, is left above it. */
const nearShare = 0.05;

/**
 * How long nothing needs to be looked at: until the next round, unless something is nearly short or is being used up at a
 * rate that would make it so before that. Nothing tells when it happens.
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
