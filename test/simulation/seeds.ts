import assert from 'node:assert/strict';
import { describeFailure } from './report.ts';
import type { SeedOptions } from './seed-options.ts';
import { simulate } from './simulate.ts';

/** The hash of each run's history by its seed. */
export type Lives = Map<number, string>;

/** All seeds from the first one up to the last. */
export function seedsUpTo(last: number): readonly number[] {
  return Array.from({ length: last }, (_, index) => index + 1);
}

/**
 * Runs seeds and records the hashes of their histories; prints the complete history of the first
 * seed that violates a rule.
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
 * Runs seeds once more, after all others: each must have the same history, whatever ran in the
 * process before.
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
