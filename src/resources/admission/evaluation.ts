import type { Pod } from '../../pods/index.ts';

/** Why a pod is rejected; final for this pod. Reason and message are part of the API. */
export interface Rejection {
  readonly reason: string;
  readonly message: string;
}

export type Admission = { readonly admit: true } | ({ readonly admit: false } & Rejection);

/** The result of checking whether a pod can be admitted now. */
export type Evaluation =
  | { readonly kind: 'admit' }
  | { readonly kind: 'reject'; readonly rejection: Rejection }
  /** The pod fits, but its exclusive CPUs, memory or devices must be allocated first. */
  | { readonly kind: 'allocate' }
  /** Only the node labels do not match the pod, and the cached Node object may be stale. */
  | { readonly kind: 'fetch-node'; readonly rejection: Rejection }
  /** The pod does not fit now, but will fit once the terminating pods have exited. */
  | { readonly kind: 'wait-for-termination'; readonly rejection: Rejection }
  /**
   * The pod is rejected only because of node pressure, but too many pods were rejected for pressure
   * recently, so it waits.
   */
  | { readonly kind: 'wait-for-pressure'; readonly rejection: Rejection }
  /** The pod is admitted after these pods are preempted. */
  | { readonly kind: 'preempt'; readonly preemption: Preemption };

/** Allocates exclusive resources to pods: devices, CPUs and memory of NUMA nodes. */
export interface PodResourceAllocator {
  /**
   * Whether the pod requests exclusive resources. Must be fast: called at each evaluation of a pod.
   */
  isRequestedBy(pod: Pod): boolean;
  /**
   * Allocates all exclusive resources that the pod requests; resolves with the rejection if they
   * cannot be allocated. Rejects only when aborted.
   */
  allocatePod(pod: Pod, signal: AbortSignal): Promise<Rejection | undefined>;
}

export interface Preemption {
  readonly victims: readonly Pod[];
  /** The first resource of which too little is free for the pod. */
  readonly resource: string;
  /** The rejection of the pod if its victims do not terminate in time. */
  readonly rejection: Rejection;
}

export function refuse(reason: string, message: string): Evaluation {
  return { kind: 'reject', rejection: { reason, message } };
}
