import { apiTime } from '../../lib/index.ts';
import { type Identity, isExpired, type Leaf, lackingOf } from '../../protocols/x509/index.ts';

const dayMs = 86_400_000;

/** How long what we make lives. */
export const lives = { authority: 3_650 * dayMs, leaf: 365 * dayMs } as const;

/** For clocks that differ, and for one that is set right soon after the machine has started. */
const earlyMs = 3_600_000;

export interface Span {
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
}

/** From a little before now on, and never beyond what vouches for it. */
export function lifeFrom(nowMs: number, lifeMs: number, within?: Span): Span {
  const begin = nowMs - earlyMs;
  const end = Math.min(begin + lifeMs, within?.notAfterMs ?? Number.POSITIVE_INFINITY);
  return { notBeforeMs: begin, notAfterMs: end };
}

/** When the last third of a life begins. */
export function renewalMs({ notBeforeMs, notAfterMs }: Span): number {
  return notAfterMs - (notAfterMs - notBeforeMs) / 3;
}

/** Why a certificate should be made anew now, in words; undefined while it is as it should be. */
export function whyRenew(leaf: Leaf, wanted: Identity, nowMs: number): string | undefined {
  const lacking = lackingOf(leaf, wanted);
  if (isExpired(leaf, nowMs)) return `it expired ${apiTime(leaf.notAfterMs)}`;
  if (nowMs < leaf.notBeforeMs)
    return `it is not valid before ${apiTime(leaf.notBeforeMs)}: the clock was ahead when it was made`;
  if (lacking.length > 0) return `it lacks ${lacking.join(', ')}`;
  return nowMs >= renewalMs(leaf) ? `it expires ${apiTime(leaf.notAfterMs)}` : undefined;
}
