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
  /** The stage of a pod whose sync is stuck. */
  | 'worker';

export interface PodStep {
  readonly stage: PodStage;
  readonly outcome: 'done' | 'failed' | 'waiting';
  /** The step as one line of text on which a user can act. */
  readonly message: string;
  readonly container?: string | undefined;
  /** The duration of the step. */
  readonly ms?: number | undefined;
  /**
   * The subject of progress messages: consecutive steps about the same subject are replaced by the
   * last one.
   */
  readonly keep?: 'last' | undefined;
}

export interface PodEvent {
  readonly type: 'Normal' | 'Warning';
  /** The reason of the event. Part of the API: the same text as in the Go kubelet. */
  readonly reason: string;
  readonly message: string;
  /** The field path of the event's object, such as spec.containers{web}. */
  readonly fieldPath?: string | undefined;
  /** Annotations for programs that read the event. */
  readonly annotations?: Readonly<Record<string, string>> | undefined;
}

/**
 * Receives everything that happens to a pod: events for users of the API, and steps of the pod's
 * history. Never blocks, never throws, limited in memory.
 */
export interface PodJournal {
  event(pod: Pod, event: PodEvent): void;
  step(uid: PodUid, step: PodStep): void;
}
