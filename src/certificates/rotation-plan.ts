import { jitter, type Random } from '../lib/index.ts';
import {
  type Identity,
  identityKey,
  isExpired,
  type KeyPair,
  type Leaf,
  lackingOf,
} from '../protocols/x509/index.ts';

/** What a certificate has to say now, or why that is not known yet. */
export type Wanted =
  | { readonly kind: 'ready'; readonly identity: Identity }
  | { readonly kind: 'unknown'; readonly why: string };

/** Between 70 and 90 % of the life: nodes that were made together do not all come at once. */
export function rotationDeadlineMs({ notBeforeMs, notAfterMs }: Leaf, random: Random): number {
  const lifeMs = notAfterMs - notBeforeMs;
  return notBeforeMs + jitter(random, lifeMs * 0.7, 2 / 7);
}

/** When to ask for a new certificate. */
export type RotationPlan =
  | { readonly do: 'wait'; readonly ms: number }
  /** What is wanted must have stayed the same for a while, as addresses come one after the other. */
  | { readonly do: 'settle'; readonly ms: number; readonly why: string }
  | { readonly do: 'request'; readonly why: string };

export interface RotationFacts {
  readonly held: KeyPair | undefined;
  readonly wanted: Identity;
  readonly nowMs: number;
  /** When `held` came, by our own clock; none when it was there before us. */
  readonly takenMs: number | undefined;
  /** Of `held`; none when it must go as soon as possible. */
  readonly deadlineMs: number | undefined;
  /** How long the same has been wanted. */
  readonly settledMs: number;
  readonly debounceMs: number;
  /** What was last issued, and lacked some of what was asked for: asking again would bring the same. */
  readonly answered: string | undefined;
}

export function planRotation(facts: RotationFacts): RotationPlan {
  const { held, wanted, nowMs, deadlineMs, settledMs, debounceMs } = facts;
  const why = reasonNow(facts);
  if (why === undefined) return { do: 'wait', ms: (deadlineMs ?? nowMs) - nowMs };
  const isUsable = held !== undefined && lackingOf(held.leaf, wanted).length === 0;
  const mustSettle = !isUsable && settledMs < debounceMs;
  return mustSettle ? { do: 'settle', ms: debounceMs - settledMs, why } : { do: 'request', why };
}

function reasonNow(facts: RotationFacts): string | undefined {
  const { held, wanted, nowMs, deadlineMs, answered } = facts;
  if (held === undefined) return 'there is no certificate yet';
  if (isExpired(held.leaf, nowMs)) return 'it has expired';
  if (hasClockGoneBack(facts, held)) return 'it is not valid yet: the clock was ahead when it was made';
  const lacking = lackingOf(held.leaf, wanted);
  if (lacking.length > 0 && answered !== identityKey(wanted)) return `it lacks ${lacking.join(', ')}`;
  if (deadlineMs === undefined) return 'it is to be replaced at once';
  return nowMs >= deadlineMs ? 'most of its life is over' : undefined;
}

/** One that was not valid yet when it came is the fault of a clock elsewhere: the next one would be no better. */
function hasClockGoneBack({ nowMs, takenMs }: RotationFacts, { leaf }: KeyPair): boolean {
  return nowMs < Math.min(leaf.notBeforeMs, takenMs ?? Number.POSITIVE_INFINITY);
}
