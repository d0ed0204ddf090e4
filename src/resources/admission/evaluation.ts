import type { Pod } from '../../pods/index.ts';

/** Why a pod is rejected; final for this pod. Reason and message are part of the API. */
export interface Rejection {
  readonly reason: string;
  readonly message: string;
}

export type Admission = { readonly admit: true } | ({ readonly admit: false } & Rejection);

/** The result of evaluating a pod at one moment. */
export type Evaluation =
  | { readonly kind: 'admit' }
  | { readonly kind: 'reject'; readonly rejection: Rejection }
  /** Exclusive resources and devices have to be allocated first. */
  | { readonly kind: 'allocate' }
  /** Only the node labels do not match, and the cached Node object may be stale. */
  | { readonly kind: 'fetch-node'; readonly rejection: Rejection }
  /** The pod fits once terminating pods have terminated. */
  | { readonly kind: 'wait-for-termination'; readonly rejection: Rejection }
  /**
   * Only node pressure prevents the admission, and the rate limit of such rejections is reached.
   */
  | { readonly kind: 'wait-for-pressure'; readonly rejection: Rejection }
  /** The pod is admitted after these pods are preempted. */
  | { readonly kind: 'preempt'; readonly preemption: Preemption };

/** Allocates exclusive resources to pods: devices, CPUs and memory of NUMA nodes. */
export interface PodResourceAllocator {
  /** Whether the pod requests any of them. Fast, because it is called for each evaluation. */
  isRequestedBy(pod: Pod): boolean;
  /** Allocates everything the pod requests, or returns why it cannot. Rejects only when aborted. */
  allocatePod(pod: Pod, signal: AbortSignal): Promise<Rejection | undefined>;
}

export interface Preemption {
  readonly victims: readonly Pod[];
  /** The first resource that was insufficient. */
  readonly resource: string;
  /** The rejection if the victims do not terminate in time. */
  readonly rejection: Rejection;
}

export function refuse(reason: string, message: string): Evaluation {
  return { kind: 'reject', rejection: { reason, message } };
}
