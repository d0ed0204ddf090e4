import { compareQuantities, parseQuantity, type Quantity } from '../../lib/index.ts';
import { type Pod, podRequests, qosClass } from '../../pods/index.ts';

/** A pod whose spec requests other resources than are allocated to it. */
export interface WaitingResize {
  /** The pod as desired, with the resources of its spec. */
  readonly pod: Pod;
  /** The pod with its allocated resources. */
  readonly allocated: Pod;
  /** The time since when the resize is pending; undefined for a new one. */
  readonly sinceMs: number | undefined;
}

/**
 * Sorts the pending resizes: decreases first, because they release capacity; then by priority; then
 * Guaranteed pods; then the longest waiting.
 */
export function sortResizes(waiting: readonly WaitingResize[]): readonly WaitingResize[] {
  const ranked = waiting.map((one) => ({ one, rank: rankOf(one) }));
  return ranked.toSorted((a, b) => compare(a.rank, b.rank)).map(({ one }) => one);
}

/** Compares two lists of numbers lexicographically. */
function rankOf({ pod, allocated, sinceMs }: WaitingResize): readonly number[] {
  return [
    asksForMore(pod, allocated) ? 1 : 0,
    -(pod.spec.priority ?? 0),
    qosClass(pod) === 'Guaranteed' ? 0 : 1,
    sinceMs ?? Number.MAX_SAFE_INTEGER,
  ];
}

function compare(a: readonly number[], b: readonly number[]): number {
  const index = a.findIndex((rank, at) => rank !== b[at]);
  return index === -1 ? 0 : (a[index] ?? 0) - (b[index] ?? 0);
}

const nothing = parseQuantity('0');

function asksForMore(pod: Pod, allocated: Pod): boolean {
  const [requested, has] = [podRequests(pod), podRequests(allocated)];
  const isMore = (a: Quantity = nothing, b: Quantity = nothing) => compareQuantities(a, b) > 0;
  return ['cpu', 'memory'].some((name) => isMore(requested.get(name), has.get(name)));
}
