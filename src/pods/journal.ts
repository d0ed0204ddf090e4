import type { Pod, PodUid } from './pod.ts';

/** The stations of a pod's way, in the order most pods pass them. */
export type PodStage =
  | 'seen'
  | 'admitted'
  | 'cgroup'
  | 'volumes'
  | 'image'
  | 'sandbox'
  | 'container'
  | 'ready'
  | 'termination'
  | 'removed'
  /** Whoever works on the pod does not get on with it. */
  | 'worker';

export interface PodStep {
  readonly stage: PodStage;
  readonly outcome: 'done' | 'failed' | 'waiting';
  /** One line a person can act on. */
  readonly message: string;
  readonly container?: string | undefined;
  /** How long it took. */
  readonly ms?: number | undefined;
  /** Of such steps in a row about the same thing the last one replaces those before: they only tell how far it is. */
  readonly keep?: 'last' | undefined;
}

export interface PodEvent {
  readonly type: 'Normal' | 'Warning';
  /** Part of the API: exactly the reference's. */
  readonly reason: string;
  readonly message: string;
  /** Such as spec.containers{web}: what of the pod it is about. */
  readonly fieldPath?: string | undefined;
  /** For programs that read the event. */
  readonly annotations?: Readonly<Record<string, string>> | undefined;
}

/**
 * Where every room writes down what happens to a pod: events for users of the API, steps for the pod's story. Never
 * blocks, never throws, bounded.
 */
export interface PodJournal {
  event(pod: Pod, event: PodEvent): void;
  step(uid: PodUid, step: PodStep): void;
}
