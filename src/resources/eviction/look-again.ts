import type { EvictionThreshold } from '../../config/index.ts';
import { amountOf, type Observations } from './observations.ts';
import { isMemory } from './signals.ts';

/** From one round to the next, where nothing else is asked for. */
export const usualRoundMs = 10_000;
const closeLookMs = 1_000;
/** Memory goes fast: it is nearly short while as much again as the threshold, or this share of all, is left above it. */
const nearShare = 0.05;

/**
 * How long nothing needs to be looked at: until the next round, unless something is nearly short or is being used up at a
 * rate that would make it so before that. Nothing tells when it happens.
 */
export function nextLookMs(
  thresholds: readonly EvictionThreshold[],
  now: Observations,
  before: Observations,
  roundMs = usualRoundMs,
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
  return isNear ? Math.min(closeLookMs, roundMs) : roundMs;
}
