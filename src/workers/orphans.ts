import { requestedGraceSeconds, shortestGraceSeconds } from './grace.ts';
import { podOf } from './updates.ts';
import { isStaticRecord, type WorkerRecord } from './worker-record.ts';

/** What is left of a pod the workers know. */
export interface KnownWorker {
  /** `terminated` until the pod is forgotten, even when all its work is done. */
  readonly state: 'sync' | 'terminating' | 'terminated';
  /** Whether nobody wants it any more. */
  readonly orphan: boolean;
  /** Whether its spec is known; if not, only the runtime told us of it. */
  readonly hasConfig: boolean;
  readonly isStatic: boolean;
}

export function knownWorker(record: WorkerRecord, orphan: boolean): KnownWorker {
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

/** A pod nobody wants any more has nobody else to end it. */
export function adoptOrphan(record: WorkerRecord, nowMs: number): OrphanFate {
  record.deleted = true;
  if (record.started !== 'yes' && !record.observedRuntime) return { kind: 'forget' };
  if (record.lifecycle.terminationRequested) return { kind: 'drive', cancel: undefined };
  const pod = podOf(record.active);
  const graceSeconds = pod === undefined ? shortestGraceSeconds : requestedGraceSeconds(pod, undefined);
  const why = 'nobody wants it any more';
  record.lifecycle.enter({ state: 'terminating', sinceMs: nowMs, graceSeconds, progress: 'requested' }, why);
  return { kind: 'drive', cancel: why };
}
