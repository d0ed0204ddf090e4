import { fullNameOf, isStaticPod, type Pod, type PodFullName, type PodUid } from '../pods/index.ts';
import type { PodLifecycle } from './lifecycle.ts';
import { type PodWork, podOf, type StatusFn, type WorkSubject } from './updates.ts';

/** The state of one pod's worker. Only the pod workers change it, and never across an await. */
export interface WorkerRecord {
  readonly uid: PodUid;
  readonly fullName: PodFullName;
  readonly lifecycle: PodLifecycle;
  /** The next work; a newer update replaces it. */
  pending: PodWork | undefined;
  /**
   * The work last passed to the syncer; every component that acts on the pod must use the pod spec
   * in it.
   */
  active: PodWork | undefined;
  /** When the pod was first added, as a clock stamp. */
  readonly addedStamp: number;
  /**
   * Whether the pod may be synced; `waiting` until another pod with the same full name has
   * finished.
   */
  started: 'no' | 'waiting' | 'yes';
  /** Whether the pod was deleted in the API, or removed from its source. */
  deleted: boolean;
  evicted: boolean;
  /** Whether the same UID was added again while this pod terminates. */
  restartRequested: boolean;
  /**
   * Whether the runtime was observed to have containers of this pod: they must be stopped even if
   * this kubelet did not start them.
   */
  wasObserved: boolean;
  /** The callbacks to call when no container of the pod runs any more. */
  readonly done: (() => void)[];
  statusFn: StatusFn | undefined;
  /**
   * When the last sync ended, as a clock stamp: the next sync needs an observation that began
   * later.
   */
  lastSyncEnd: number;
  /**
   * The failure of the last sync, as it was logged, so that a repeated failure is not logged again.
   */
  failure: string | undefined;
  run: WorkerRun;
}

/** The state of the worker's loop. */
export type WorkerRun =
  | { readonly state: 'idle' }
  /** The loop is active, but no sync is running. */
  | { readonly state: 'awake' }
  | { readonly state: 'busy'; readonly sinceMs: number; readonly scope: AbortController };

export function newRecord(subject: WorkSubject, lifecycle: PodLifecycle, seenStamp: number): WorkerRecord {
  return {
    uid: subject.kind === 'pod' ? subject.pod.metadata.uid : subject.pod.uid,
    fullName: nameOf(subject),
    lifecycle,
    pending: undefined,
    active: undefined,
    addedStamp: seenStamp,
    started: 'no',
    deleted: false,
    evicted: false,
    restartRequested: false,
    wasObserved: false,
    done: [],
    statusFn: undefined,
    lastSyncEnd: Number.NEGATIVE_INFINITY,
    failure: undefined,
    run: { state: 'idle' },
  };
}

/** Returns the newest spec of the pod; undefined for a pod that only the runtime has. */
export function knownPod(record: WorkerRecord): Pod | undefined {
  return podOf(record.pending) ?? podOf(record.active);
}

export function isStaticRecord(record: WorkerRecord): boolean {
  const pod = podOf(record.active) ?? podOf(record.pending);
  return pod !== undefined && isStaticPod(pod);
}

function nameOf(subject: WorkSubject): PodFullName {
  if (subject.kind === 'pod') return fullNameOf(subject.pod);
  return `${subject.pod.name}_${subject.pod.namespace}` as PodFullName;
}
