import type { Pod } from '../../pods/index.ts';

/** Why a pod is rejected; final for this pod. Reason and message are part of the API. */
export interface Refusal {
  readonly reason: string;
  readonly message: string;
}

export type Admission = { readonly admit: true } | ({ readonly admit: false } & Refusal);

/** The result of evaluating a pod at one moment. */
export type Judgement =
  | { readonly kind: 'admit' }
  | { readonly kind: 'refuse'; readonly refusal: Refusal }
  /** Its exclusive resources and devices have to be allocated first. */
  | { readonly kind: 'allot' }
  /** Only the node labels do not match, and the cached Node object may be stale. */
  | { readonly kind: 'ask-node'; readonly refusal: Refusal }
  /** It fits once terminating pods have terminated. */
  | { readonly kind: 'wait-for-room'; readonly refusal: Refusal }
  /**
   * Only node pressure prevents the admission, and the rate limit of such rejections is reached.
   */
  | { readonly kind: 'wait-for-relief'; readonly refusal: Refusal }
  /** It is admitted after these pods are preempted. */
  | { readonly kind: 'make-room'; readonly preemption: Preemption };

/** Allocates exclusive resources: devices, CPUs, memory of a NUMA node. */
export interface Allotter {
  /** Whether the pod requests any of them. Fast. */
  isRequestedBy(pod: Pod): boolean;
  /** Allocates everything the pod requests, or returns why it cannot. Rejects only when aborted. */
  allot(pod: Pod, signal: AbortSignal): Promise<Refusal | undefined>;
}

export interface Preemption {
  readonly victims: readonly Pod[];
  /** The first resource that was insufficient. */
  readonly resource: string;
  /** The rejection if the victims do not terminate in time. */
  readonly refusal: Refusal;
}

export function refuse(reason: string, message: string): Judgement {
  return { kind: 'refuse', refusal: { reason, message } };
}
