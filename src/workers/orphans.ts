import { minGraceSeconds, requestedGraceSeconds } from './grace.ts';
import { podOf } from './updates.ts';
import { isStaticRecord, type WorkerRecord } from './worker-record.ts';

/** The state of a pod with a worker, for housekeeping. */
export interface WorkerSummary {
  /**
   * The lifecycle state; `terminated` until the worker is dropped, even after its clean-up has
   * finished.
   */
  readonly state: 'sync' | 'terminating' | 'terminated';
  /** Whether no source has the pod any more; its worker remains to terminate it. */
  readonly orphan: boolean;
  /** Whether the pod spec is known; otherwise only the runtime has the pod. */
  readonly hasConfig: boolean;
  readonly isStatic: boolean;
}

export function workerSummary(record: WorkerRecord, orphan: boolean): WorkerSummary {
  const { lifecycle, active, pending } = record;
  const ending = lifecycle.terminationRequested ? 'terminating' : 'sync';
  return {
    state: lifecycle.ended ? 'terminated' : ending,
    orphan,
    hasConfig: podOf(active ?? pending) !== undefined,
    isStatic: isStaticRecord(record),
  };
}

export type OrphanFate =
  | { readonly kind: 'forget' }
  | { readonly kind: 'drive'; readonly cancel: string | undefined };

/** Updates the record of a pod that no source has any more: its worker can only terminate it. */
export function adoptOrphan(record: WorkerRecord, nowMs: number): OrphanFate {
  record.deleted = true;
  if (record.started !== 'yes' && !record.wasObserved) return { kind: 'forget' };
  if (record.lifecycle.terminationRequested) return { kind: 'drive', cancel: undefined };
  const pod = podOf(record.active);
  const graceSeconds = pod === undefined ? minGraceSeconds : requestedGraceSeconds(pod, undefined);
  const why = 'no source has it any more';
  record.lifecycle.enter({ state: 'terminating', sinceMs: nowMs, graceSeconds, progress: 'requested' }, why);
  return { kind: 'drive', cancel: why };
}
