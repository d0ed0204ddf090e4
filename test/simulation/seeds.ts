import assert from 'node:assert/strict';
import { describeFailure } from './report.ts';
import type { SeedOptions } from './seed-options.ts';
import { simulate } from './simulate.ts';

/** The hash of each life by its seed. */
export type Lives = Map<number, string>;

/** All seeds from the first one up to the last. */
export function seedsUpTo(last: number): readonly number[] {
  return Array.from({ length: last }, (_, index) => index + 1);
}

/** Plays seeds and writes their lives down; the first that breaks a rule is told with all that happened. */
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

/** Plays seeds once more, after all others: each must live as it did before, whatever the process went through. */
export async function playAgain(
  seeds: readonly number[],
  options: SeedOptions,
  lives: Readonly<Lives>,
): Promise<void> {
  for (const seed of seeds) {
    const once = lives.get(seed) ?? (await simulate(seed, options)).hash;
    assert.equal((await simulate(seed, options)).hash, once, `Seed ${seed} went another way`);
  }
}
