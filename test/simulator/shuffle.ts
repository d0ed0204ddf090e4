import { type Random, randomInt } from '../../src/lib/index.ts';

/** The items in random order, because the real runtime lists records in no defined order. */
export function shuffled<T>(items: readonly T[], random: Random): readonly T[] {
  const mixed = [...items];
  for (let last = mixed.length - 1; last > 0; last--) {
    const other = randomInt(random, last + 1);
    [mixed[last], mixed[other]] = [mixed[other] as T, mixed[last] as T];
  }
  return mixed;
}
