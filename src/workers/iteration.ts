import { type Clock, cancelledError, describeError, type Logger } from '../lib/index.ts';
import type { ObservedPod, Pod, PodJournal, PodUid } from '../pods/index.ts';
import { minGraceSeconds } from './grace.ts';
import type { ObservedPods, PodSyncer } from './syncer.ts';
import { type PodWork, uidOf } from './updates.ts';
import type { WorkerRecord } from './worker-record.ts';

export interface IterationDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly journal: PodJournal;
  readonly syncer: PodSyncer;
  readonly observed: ObservedPods;
  /** Requests a relist of the pod, whose result is then available from `observed`. */
  readonly requestRelist: (uid: PodUid) => void;
}

/** The result of a sync. */
export type IterationEnd =
  | { readonly kind: 'synced'; readonly pod: 'terminal' | 'not-terminal' }
  | { readonly kind: 'stopped' }
  | { readonly kind: 'runtime-pod-stopped' }
  | { readonly kind: 'cleaned-up' }
  | { readonly kind: 'cancelled' }
  | { readonly kind: 'failed'; readonly error: unknown };

/** Runs one sync of one pod, depending on its state. Never throws. */
export async function iterate(
  deps: IterationDeps,
  record: WorkerRecord,
  work: PodWork,
  signal: AbortSignal,
): Promise<IterationEnd> {
  try {
    signal.throwIfAborted();
    return await syncOnce(deps, record, work, signal);
  } catch (error) {
    // A sync may fail with any error after its signal was aborted; it counts as cancelled.
    if (signal.aborted) return { kind: 'cancelled' };
    return { kind: 'failed', error };
  }
}

async function syncOnce(
  deps: IterationDeps,
  record: WorkerRecord,
  work: PodWork,
  signal: AbortSignal,
): Promise<IterationEnd> {
  if (work.subject.kind === 'pod') {
    const { pod } = work.subject;
    const observed = await observe(deps, record, pod, signal);
    // While the worker waited for a newer status from the pod cache, the desired state of the pod
    // may have changed; every such change aborts the signal.
    signal.throwIfAborted();
    return await finishing(deps, record, work, (looks) =>
      syncKnown(deps, record, work, { pod, observed, ...looks }, signal),
    );
  }
  const runningPod = work.subject.pod;
  record.lifecycle.beginTermination();
  return await finishing(deps, record, work, async ({ requestRelist }) => {
    const graceSeconds = record.lifecycle.graceSeconds ?? minGraceSeconds;
    const context = { runningPod, graceSeconds, requestRelist };
    await deps.syncer.syncTerminatingRuntimePod(context, signal);
    return { kind: 'runtime-pod-stopped' };
  });
}

async function observe(
  { observed, journal }: IterationDeps,
  record: WorkerRecord,
  pod: Pod,
  signal: AbortSignal,
): Promise<ObservedPod> {
  try {
    return await observed.getNewerThan(record.uid, record.lastSyncEnd, signal);
  } catch (error) {
    if (!signal.aborted) {
      const message = `error determining status: ${describeError(error)}`;
      journal.event(pod, { type: 'Warning', reason: 'FailedSync', message });
    }
    throw error;
  }
}

type Observing = Pick<Known, 'requestRelist' | 'observeNow'>;

/**
 * Records the time at which the sync ended before it requests a relist: the next sync accepts only
 * an observation that began after that time. If the sync changed nothing, the previous observation
 * remains valid; if the sync ended with `observeNow`, the observation made by `observeNow` remains
 * valid.
 */
async function finishing(
  deps: IterationDeps,
  record: WorkerRecord,
  work: PodWork,
  sync: (observing: Observing) => Promise<IterationEnd>,
): Promise<IterationEnd> {
  const { clock, observed } = deps;
  let isRelistRequested = false;
  let observedAt: number | undefined;
  let end: IterationEnd | undefined;
  const requestRelist = () => {
    isRelistRequested = true;
    observedAt = undefined;
  };
  const observeNow = async (signal: AbortSignal) => {
    const stamp = clock.stamp();
    const observation = await observed.getNewerThan(record.uid, stamp, signal);
    observedAt = stamp;
    isRelistRequested = false;
    return observation;
  };
  try {
    end = await sync({ requestRelist, observeNow });
    return end;
  } finally {
    const isOver = end !== undefined && end.kind !== 'failed' && end.kind !== 'cancelled';
    if (!isOver) observedAt = undefined;
    const isUnchanged = end?.kind === 'synced' && !isRelistRequested;
    if (!isUnchanged) record.lastSyncEnd = observedAt ?? clock.stamp();
    if (isRelistRequested || (end?.kind === 'stopped' && observedAt === undefined))
      deps.requestRelist(uidOf(work.subject));
  }
}

interface Known {
  readonly pod: Pod;
  readonly observed: ObservedPod;
  readonly requestRelist: () => void;
  readonly observeNow: (signal: AbortSignal) => Promise<ObservedPod>;
}

async function syncKnown(
  { syncer }: IterationDeps,
  record: WorkerRecord,
  { updateType, mirrorPod }: PodWork,
  known: Known,
  signal: AbortSignal,
): Promise<IterationEnd> {
  const { lifecycle } = record;
  switch (lifecycle.state) {
    case 'syncing':
      return { kind: 'synced', pod: await syncer.syncPod({ ...known, updateType, mirrorPod }, signal) };
    case 'terminating': {
      lifecycle.beginTermination();
      const { graceSeconds } = lifecycle;
      const newest = {
        get statusFn() {
          return record.statusFn;
        },
      };
      const context = Object.assign(newest, { ...known, updateType, graceSeconds });
      await syncer.syncTerminatingPod(context, signal);
      return { kind: 'stopped' };
    }
    case 'terminated':
      await syncer.syncTerminatedPod(known, signal);
      return { kind: 'cleaned-up' };
    case 'finished':
      throw cancelledError('the pod is finished');
  }
}
