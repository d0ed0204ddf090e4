import assert from 'node:assert/strict';
import { describeFailure } from './report.ts';
import type { SeedOptions } from './seed-options.ts';
import { simulate } from './simulate.ts';

/** The history hash of each simulated seed. */
export type Lives = Map<number, string>;

/** All seeds from 1 up to the last one. */
export function seedsUpTo(last: number): readonly number[] {
  return Array.from({ length: last }, (_, index) => index + 1);
}

/**
 * Simulates seeds and records their history hashes; prints the history of the first seed that
 * violates a rule.
 */
export async function playSeeds(
  seeds: readonly number[],
  options: SeedOptions = {},
  lives: Lives = new Map(),
): Promise<void> {
  for (const seed of seeds) {
    const result = await simulate(seed, options);
    if (result.violations.length > 0) assert.fail(await describeFailure(result, options));
    lives.set(seed, result.hash);
  }
}

/**
 * Simulates seeds a second time, after all others: each must have the same history, whatever ran in
 * the process before.
 */
export async function playAgain(
  seeds: readonly number[],
  options: SeedOptions,
  lives: Readonly<Lives>,
): Promise<void> {
  for (const seed of seeds) {
    const once = lives.get(seed) ?? (await simulate(seed, options)).hash;
    assert.equal((await simulate(seed, options)).hash, once, `Seed ${seed} had another history`);
  }
}
