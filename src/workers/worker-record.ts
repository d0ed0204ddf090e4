import { fullNameOf, isStaticPod, type Pod, type PodFullName, type PodUid } from '../pods/index.ts';
import type { PodLifecycle } from './lifecycle.ts';
import { type PodWork, podOf, type StatusFn, type WorkSubject } from './updates.ts';

/** All that is remembered of one pod. Changed only between awaits, by the pod workers. */
export interface WorkerRecord {
  readonly uid: PodUid;
  readonly fullName: PodFullName;
  readonly lifecycle: PodLifecycle;
  /** What the worker takes next; a newer update replaces it. */
  pending: PodWork | undefined;
  /** What was last handed to a syncer: the truth about this pod for everybody else. */
  active: PodWork | undefined;
  /** When the pod was first heard of, by the clock's stamps. */
  readonly seenStamp: number;
  /** Whether the pod was let through to a syncer; `waiting` for another of its name to end. */
  started: 'no' | 'waiting' | 'yes';
  /** Deleted in the API, or gone from its source. */
  deleted: boolean;
  evicted: boolean;
  /** The same UID was created again while this one ends. */
  restartRequested: boolean;
  /** The runtime was seen to have something of this pod: it must be stopped even if we never started it. */
  observedRuntime: boolean;
  /** Who wants to know when nothing of the pod runs any more. */
  readonly done: (() => void)[];
  statusFn: StatusFn | undefined;
  /** The next look must have begun after this. */
  lastSyncEnd: number;
  /** Why the last sync failed, as it was told. */
  failure: string | undefined;
  run: WorkerRun;
}

/** What the worker is doing. */
export type WorkerRun =
  | { readonly state: 'idle' }
  /** Its loop runs, between two syncs. */
  | { readonly state: 'awake' }
  | { readonly state: 'busy'; readonly sinceMs: number; readonly scope: AbortController };

export function newRecord(subject: WorkSubject, lifecycle: PodLifecycle, seenStamp: number): WorkerRecord {
  return {
    uid: subject.kind === 'pod' ? subject.pod.metadata.uid : subject.pod.uid,
    fullName: nameOf(subject),
    lifecycle,
    pending: undefined,
    active: undefined,
    seenStamp,
    started: 'no',
    deleted: false,
    evicted: false,
    restartRequested: false,
    observedRuntime: false,
    done: [],
    statusFn: undefined,
    lastSyncEnd: Number.NEGATIVE_INFINITY,
    failure: undefined,
    run: { state: 'idle' },
  };
}

/** The newest spec anybody gave us; undefined for a pod only the runtime knows. */
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
