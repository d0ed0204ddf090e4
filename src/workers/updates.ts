import type { PodStatus } from '../kinds/index.ts';
import type { Pod, PodUid, RuntimePod } from '../pods/index.ts';

/** The kind of a pod update. */
export type UpdateType = 'create' | 'update' | 'sync' | 'kill';

/**
 * Returns the status to publish instead of the given one, such as that of an evicted pod. May be
 * called several times.
 */
export type StatusFn = (status: PodStatus) => PodStatus;

export interface KillOptions {
  /**
   * The pod was evicted: its dead containers and logs may be removed before its API object is
   * deleted.
   */
  readonly evict?: boolean | undefined;
  /** Overrides the status; if several updates set it, the last one is used. */
  readonly statusFn?: StatusFn | undefined;
  /** Shortens the grace period; a value longer than the current grace period is ignored. */
  readonly graceOverrideSeconds?: number | undefined;
  /**
   * Called exactly once: when no container of the pod runs any more, or immediately if the update
   * has no effect.
   */
  readonly done?: (() => void) | undefined;
}

/**
 * An update for the worker of a pod. Either `pod` or `runningPod` is set: a pod with only
 * `runningPod` has no source any more and can only be killed.
 */
export interface UpdatePodOptions {
  readonly updateType: UpdateType;
  readonly pod?: Pod | undefined;
  readonly runningPod?: RuntimePod | undefined;
  readonly mirrorPod?: Pod | undefined;
  /** The clock stamp at which the change was observed, to measure the latency of the worker. */
  readonly startStamp?: number | undefined;
  readonly kill?: KillOptions | undefined;
}

/** The pending or last work of a worker. How a pod terminates is stored in its lifecycle. */
export interface PodWork {
  readonly updateType: UpdateType;
  readonly subject: WorkSubject;
  readonly mirrorPod: Pod | undefined;
  readonly startStamp: number | undefined;
}

export type WorkSubject =
  | { readonly kind: 'pod'; readonly pod: Pod }
  | { readonly kind: 'runtime-pod'; readonly pod: RuntimePod };

/**
 * Returns the pod of the update, or the runtime pod that the update kills; undefined for an update
 * with neither.
 */
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

/**
 * Returns the update that replaces the pending update: the newer one, with the start stamp of the
 * older one, because the latency is measured from the older update.
 */
export function replacing(pending: PodWork | undefined, work: PodWork): PodWork {
  const stamps = [pending?.startStamp, work.startStamp].filter((stamp) => stamp !== undefined);
  return stamps.length === 0 ? work : { ...work, startStamp: Math.min(...stamps) };
}

/**
 * Returns the update with the pod to use afterwards: a known pod with a spec is kept when the
 * update contains only a pod from the runtime, which has no spec.
 */
export function merged(active: PodWork | undefined, update: PodWork): PodWork {
  const knownPod = podOf(active);
  const retainsPod = knownPod !== undefined && update.subject.kind === 'runtime-pod';
  return {
    ...update,
    subject: retainsPod ? { kind: 'pod', pod: knownPod } : update.subject,
    mirrorPod: update.mirrorPod ?? active?.mirrorPod,
  };
}
