import type { Pod } from '../../pods/index.ts';

/** Why a pod may not run here: final for this pod. Reason and message are part of the API. */
export interface Refusal {
  readonly reason: string;
  readonly message: string;
}

export type Admission = { readonly admit: true } | ({ readonly admit: false } & Refusal);

/** What can be said of a pod at one moment. */
export type Judgement =
  | { readonly kind: 'admit' }
  | { readonly kind: 'refuse'; readonly refusal: Refusal }
  /** What it asks for by the piece has to be set aside first. */
  | { readonly kind: 'allot' }
  /** Only the labels of the node speak against it, and the copy of the node at hand may be old. */
  | { readonly kind: 'ask-node'; readonly refusal: Refusal }
  /** It will fit once pods have ended that are ending already. */
  | { readonly kind: 'wait-for-room'; readonly refusal: Refusal }
  /** Nothing but what the node is short of now speaks against it, and its time to be refused has not come. */
  | { readonly kind: 'wait-for-relief'; readonly refusal: Refusal }
  /** It matters more than these, which are to end for it. */
  | { readonly kind: 'make-room'; readonly preemption: Preemption };

/** Who gives out what comes by the piece: devices, processors, memory of one part of the machine. */
export interface Allotter {
  /** Whether the pod asks for any of it. Quick. */
  isRequestedBy(pod: Pod): boolean;
  /** Sets aside all the pod asks for, and answers why it cannot have it. Throws only when it is aborted. */
  allot(pod: Pod, signal: AbortSignal): Promise<Refusal | undefined>;
}

export interface Preemption {
  readonly victims: readonly Pod[];
  /** The first resource that was short. */
  readonly resource: string;
  /** What is told of the pod if nobody makes room. */
  readonly refusal: Refusal;
}

export function refuse(reason: string, message: string): Judgement {
  return { kind: 'refuse', refusal: { reason, message } };
}
