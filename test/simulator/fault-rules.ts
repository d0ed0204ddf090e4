import type { Random } from '../../src/lib/index.ts';

/** When a rule of a script applies. */
export interface RuleBounds {
  /**
   * The matching calls or events to which the rule applies, counted from 1; all of them unless
   * given.
   */
  readonly nth?: number;
  /** How often the rule applies before it is used up. */
  readonly times?: number;
}

/** A rule that counts its matches. */
export interface CountedRule<Rule> {
  readonly rule: Rule;
  readonly strikes: () => boolean;
}

export function countedRules<Rule extends RuleBounds>(
  rules: readonly Rule[] = [],
): readonly CountedRule<Rule>[] {
  return rules.map((rule) => ({ rule, strikes: counted(rule) }));
}

/** Every rule that matches counts the call, whether or not another rule applies. */
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

/** One random number decides, so that a rate of zero changes nothing about the others. */
export function draw<T>(random: Random, chances: readonly Chance<T>[]): T | undefined {
  let left = random.next();
  for (const [rate, make] of chances) {
    if (left < rate) return make();
    left -= rate;
  }
  return undefined;
}
