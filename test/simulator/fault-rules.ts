import type { Random } from '../../src/lib/index.ts';

/** When a fault rule applies. */
export interface RuleBounds {
  /**
   * The number of the matching call or event to which the rule applies, counted from 1; by default
   * all.
   */
  readonly nth?: number;
  /** How often the rule applies at most. */
  readonly times?: number;
}

/** A fault rule that counts its matches. */
export interface CountedRule<Rule> {
  readonly rule: Rule;
  readonly strikes: () => boolean;
}

export function countedRules<Rule extends RuleBounds>(
  rules: readonly Rule[] = [],
): readonly CountedRule<Rule>[] {
  return rules.map((rule) => ({ rule, strikes: counted(rule) }));
}

/**
 * Returns the fault of the first rule that applies. A call is counted by every rule that it
 * matches, even if another rule applies.
 */
export function firstStrike<F>(matching: readonly CountedRule<{ readonly fault: F }>[]): F | undefined {
  return matching.filter(({ strikes }) => strikes())[0]?.rule.fault;
}

function counted({ nth, times }: RuleBounds): () => boolean {
  let count = 0;
  let struck = 0;
  return () => {
    count++;
    if (nth !== undefined && count !== nth) return false;
    if (times !== undefined && struck >= times) return false;
    struck++;
    return true;
  };
}

export type Chance<T> = readonly [rate: number, make: () => T];

/**
 * Selects a fault with a single random number, so that a fault with rate zero does not affect the
 * others.
 */
export function draw<T>(random: Random, chances: readonly Chance<T>[]): T | undefined {
  let left = random.next();
  for (const [rate, make] of chances) {
    if (left < rate) return make();
    left -= rate;
  }
  return undefined;
}
