import type { Pod, PodUid } from './pod.ts';

/** The stages of a pod's life, in the order most pods pass them. */
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
  /** The pod's sync is stuck. */
  | 'worker';

export interface PodStep {
  readonly stage: PodStage;
  readonly outcome: 'done' | 'failed' | 'waiting';
  /** One line a user can act on. */
  readonly message: string;
  readonly container?: string | undefined;
  /** The duration of the step. */
  readonly ms?: number | undefined;
  /**
   * For progress messages: consecutive steps about the same subject are replaced by the last one.
   */
  readonly keep?: 'last' | undefined;
}

export interface PodEvent {
  readonly type: 'Normal' | 'Warning';
  /** Part of the API: exactly as in the Go kubelet. */
  readonly reason: string;
  readonly message: string;
  /** The field path of the subject, such as spec.containers{web}. */
  readonly fieldPath?: string | undefined;
  /** For programs that read the event. */
  readonly annotations?: Readonly<Record<string, string>> | undefined;
}

/**
 * Receives everything that happens to a pod: events for users of the API, and steps of the pod's
 * history. Never blocks, never throws, bounded.
 */
export interface PodJournal {
  event(pod: Pod, event: PodEvent): void;
  step(uid: PodUid, step: PodStep): void;
}
