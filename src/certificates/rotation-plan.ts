import { jitter, type Random } from '../lib/index.ts';
import {
  type Identity,
  identityKey,
  isExpired,
  type KeyPair,
  type Leaf,
  missingFrom,
} from '../protocols/x509/index.ts';

/** The subject and names that the certificate must have, or why they are not known yet. */
export type RequiredIdentity =
  | { readonly kind: 'ready'; readonly identity: Identity }
  | { readonly kind: 'unknown'; readonly why: string };

/**
 * Returns a random time between 70 and 90 % of the lifetime, so that nodes that joined together do
 * not renew together.
 */
export function rotationDeadlineMs({ notBeforeMs, notAfterMs }: Leaf, random: Random): number {
  const lifeMs = notAfterMs - notBeforeMs;
  return notBeforeMs + jitter(random, lifeMs * 0.7, 2 / 7);
}

/** The next action: wait, wait until the identity is stable, or request a certificate. */
export type RotationPlan =
  | { readonly do: 'wait'; readonly ms: number }
  /**
   * The required identity must be stable for some time, because the node's addresses are reported
   * one after the other.
   */
  | { readonly do: 'settle'; readonly ms: number; readonly why: string }
  | { readonly do: 'request'; readonly why: string };

export interface RotationFacts {
  readonly held: KeyPair | undefined;
  readonly required: Identity;
  readonly nowMs: number;
  /** The monotonic time at which `held` was issued; undefined if it was loaded at start. */
  readonly receivedMs: number | undefined;
  /**
   * The time at which `held` must be renewed; undefined if it must be replaced as soon as possible.
   */
  readonly deadlineMs: number | undefined;
  /** How long the same identity has been required. */
  readonly stableMs: number;
  readonly debounceMs: number;
  /**
   * The identity for which the signer issued an incomplete certificate: another request would
   * return the same.
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
 * Whether the certificate is not valid yet because the clock was set back. False if it was not
 * valid yet when it was received: then the clocks of node and signer differ, and another request
 * would not help.
 */
function hasClockGoneBack({ nowMs, receivedMs }: RotationFacts, { leaf }: KeyPair): boolean {
  return nowMs < Math.min(leaf.notBeforeMs, receivedMs ?? Number.POSITIVE_INFINITY);
}
