import type { PodStatus } from '../kinds/index.ts';
import type { Pod, PodUid, RuntimePod } from '../pods/index.ts';

/** Why a worker runs. */
export type UpdateType = 'create' | 'update' | 'sync' | 'kill';

/** Answers the status to publish instead of the one given, such as that of an evicted pod. May be called many times. */
export type StatusFn = (status: PodStatus) => PodStatus;

export interface KillOptions {
  /** An evicted pod's content may go before its API object does. */
  readonly evict?: boolean | undefined;
  /** Of several, the one that came last counts. */
  readonly statusFn?: StatusFn | undefined;
  /** Only ever shortens the time a pod is given. */
  readonly graceOverrideSeconds?: number | undefined;
  /** Called exactly once: when no container runs any more, or at once if there is nothing to wait for. */
  readonly done?: (() => void) | undefined;
}

/**
 * What the worker of a pod should know. One of `pod` and `runningPod` is given: a running pod alone is one that the
 * runtime has and nobody wants, and can only be killed.
 */
export interface UpdatePodOptions {
  readonly updateType: UpdateType;
  readonly pod?: Pod | undefined;
  readonly runningPod?: RuntimePod | undefined;
  readonly mirrorPod?: Pod | undefined;
  /** A stamp of the clock from when the change was seen, to measure how long the worker took to follow it. */
  readonly startStamp?: number | undefined;
  readonly kill?: KillOptions | undefined;
}

/** What waits for a worker, or was last handed to a syncer. How a pod ends is kept in its lifecycle, not here. */
export interface PodWork {
  readonly updateType: UpdateType;
  readonly subject: WorkSubject;
  readonly mirrorPod: Pod | undefined;
  readonly startStamp: number | undefined;
}

export type WorkSubject =
  | { readonly kind: 'pod'; readonly pod: Pod }
  | { readonly kind: 'runtime-pod'; readonly pod: RuntimePod };

/** What is to be worked on, or undefined of an update that names nothing that can be. */
export function subjectOf({ pod, runningPod, updateType }: UpdatePodOptions): WorkSubject | undefined {
  if (pod !== undefined) return { kind: 'pod', pod };
  if (runningPod === undefined || updateType !== 'kill') return undefined;
  return { kind: 'runtime-pod', pod: runningPod };
}

export function uidOf(subject: WorkSubject): PodUid {
  return subject.kind === 'pod' ? subject.pod.metadata.uid : subject.pod.uid;
}

export function podOf(work: PodWork | undefined): Pod | undefined {
  return work?.subject.kind === 'pod' ? work.subject.pod : undefined;
}

/** The newer update replaces the one that waits; how long it waits is counted from the older. */
export function replacing(pending: PodWork | undefined, work: PodWork): PodWork {
  const stamps = [pending?.startStamp, work.startStamp].filter((stamp) => stamp !== undefined);
  return stamps.length === 0 ? work : { ...work, startStamp: Math.min(...stamps) };
}

/** What is known after the update: a real pod is never overwritten by one only the runtime knows. */
export function merged(active: PodWork | undefined, update: PodWork): PodWork {
  const known = podOf(active);
  const keepsPod = known !== undefined && update.subject.kind === 'runtime-pod';
  return {
    ...update,
    subject: keepsPod ? { kind: 'pod', pod: known } : update.subject,
    mirrorPod: update.mirrorPod ?? active?.mirrorPod,
  };
}
