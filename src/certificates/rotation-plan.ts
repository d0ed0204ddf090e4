import { jitter, type Random } from '../lib/index.ts';
import {
  type Identity,
  identityKey,
  isExpired,
  type KeyPair,
  type Leaf,
  missingFrom,
} from '../protocols/x509/index.ts';

/** The required content of a certificate, or why it is not known yet. */
export type RequiredIdentity =
  | { readonly kind: 'ready'; readonly identity: Identity }
  | { readonly kind: 'unknown'; readonly why: string };

/**
 * Between 70 and 90 % of the lifetime, so that nodes that joined together do not renew together.
 */
export function rotationDeadlineMs({ notBeforeMs, notAfterMs }: Leaf, random: Random): number {
  const lifeMs = notAfterMs - notBeforeMs;
  return notBeforeMs + jitter(random, lifeMs * 0.7, 2 / 7);
}

/** Decides when to request a new certificate. */
export type RotationPlan =
  | { readonly do: 'wait'; readonly ms: number }
  /**
   * The required content must be stable for some time, because addresses appear one after the
   * other.
   */
  | { readonly do: 'settle'; readonly ms: number; readonly why: string }
  | { readonly do: 'request'; readonly why: string };

export interface RotationFacts {
  readonly held: KeyPair | undefined;
  readonly required: Identity;
  readonly nowMs: number;
  /** The monotonic time at which `held` arrived; none if it was there at start. */
  readonly receivedMs: number | undefined;
  /** The renewal time of `held`; none if it must be replaced as soon as possible. */
  readonly deadlineMs: number | undefined;
  /** How long the same content has been required. */
  readonly stableMs: number;
  readonly debounceMs: number;
  /**
   * The last issued certificate, if it lacked requested content: another request would return the
   * same.
   */
  readonly incompleteFor: string | undefined;
}

export function planRotation(facts: RotationFacts): RotationPlan {
  const { held, required, nowMs, deadlineMs, stableMs, debounceMs } = facts;
  const why = rotationReason(facts);
  if (why === undefined) return { do: 'wait', ms: (deadlineMs ?? nowMs) - nowMs };
  const isUsable = held !== undefined && missingFrom(held.leaf, required).length === 0;
  const isUnstable = !isUsable && stableMs < debounceMs;
  return isUnstable ? { do: 'settle', ms: debounceMs - stableMs, why } : { do: 'request', why };
}

function rotationReason(facts: RotationFacts): string | undefined {
  const { held, required, nowMs, deadlineMs, incompleteFor } = facts;
  if (held === undefined) return 'there is no certificate yet';
  if (isExpired(held.leaf, nowMs)) return 'it has expired';
  if (hasClockGoneBack(facts, held)) return 'it is not valid yet: the clock was ahead when it was made';
  const missing = missingFrom(held.leaf, required);
  if (missing.length > 0 && incompleteFor !== identityKey(required)) return `it lacks ${missing.join(', ')}`;
  if (deadlineMs === undefined) return 'it must be replaced at once';
  return nowMs >= deadlineMs ? 'most of its lifetime is over' : undefined;
}

/**
 * A certificate that was not yet valid on arrival is caused by another clock: the next one would be
 * the same.
 */
function hasClockGoneBack({ nowMs, receivedMs }: RotationFacts, { leaf }: KeyPair): boolean {
  return nowMs < Math.min(leaf.notBeforeMs, receivedMs ?? Number.POSITIVE_INFINITY);
}
