import { cancelledError, describeError, type Random } from '../lib/index.ts';
import { isStaticPod, type Pod, type PodUid } from '../pods/index.ts';
import { type IterationDeps, type IterationEnd, iterate } from './iteration.ts';
import type { WorkerObserver } from './metrics.ts';
import { blockedDelayMs, requeueDelayMs, type SyncEnd } from './requeue.ts';
import { merged, type PodWork } from './updates.ts';
import type { WorkerRecord } from './worker-record.ts';
import { fieldsOf, type WorkerState } from './worker-state.ts';

export interface LoopDeps extends IterationDeps {
  readonly random: Random;
  /**
   * The queue of due syncs; the consumer of the queue passes a sync update for each due pod to the
   * pod's worker.
   */
  readonly queue: {
    enqueue(uid: PodUid, delayMs: number): void;
    /**
     * Schedules a sync of the pod after the delay; a sync that is already scheduled for an earlier
     * time remains.
     */
    add(uid: PodUid, delayMs: number): void;
    begin(uid: PodUid): void;
  };
  readonly syncFrequencyMs: number;
  readonly metrics?: WorkerObserver | undefined;
}

/**
 * Runs the pending work of pods: one loop per pod with work, which ends when no work is left. Only
 * the loop runs syncs of its pod, one at a time.
 */
export class WorkerLoops {
  readonly #deps: LoopDeps;
  readonly #state: WorkerState;
  readonly #running = new Set<Promise<void>>();
  #stopped = false;

  constructor(deps: LoopDeps, state: WorkerState) {
    this.#deps = deps;
    this.#state = state;
  }

  get running(): number {
    return this.#running.size;
  }

  get stopped(): boolean {
    return this.#stopped;
  }

  wake(record: WorkerRecord | undefined): void {
    if (record === undefined || record.run.state !== 'idle' || this.#stopped) return;
    record.run = { state: 'awake' };
    const loop = this.#loop(record).finally(() => this.#running.delete(loop));
    this.#running.add(loop);
  }

  /** Syncs the pod again without a new update. */
  replay(record: WorkerRecord): void {
    record.pending ??= record.active;
    if (record.pending !== undefined) this.wake(record);
  }

  /** Cancels the running sync of the pod, if there is one. */
  cancel({ run }: WorkerRecord, why: string): void {
    if (run.state === 'busy') run.scope.abort(cancelledError(why));
  }

  /** Prevents further syncs, cancels the running ones and waits for them. */
  async stop(why: string): Promise<void> {
    this.#stopped = true;
    for (const record of this.#state) this.cancel(record, why);
    await Promise.allSettled(this.#running);
  }

  async #loop(record: WorkerRecord): Promise<void> {
    // Yields first, so that an update takes effect completely before the sync begins.
    await Promise.resolve();
    for (let work = this.#nextWork(record); work !== undefined; work = this.#nextWork(record)) {
      const scope = new AbortController();
      record.run = { state: 'busy', sinceMs: this.#deps.clock.monotonicMs(), scope };
      const end = await iterate(this.#deps, record, work, scope.signal);
      record.run = { state: 'awake' };
      if (!this.#stopped) this.#conclude(record, work, end);
    }
    record.run = { state: 'idle' };
  }

  /** Returns the work to do now; undefined if the pod may not be synced yet. */
  #nextWork(record: WorkerRecord): PodWork | undefined {
    const work = record.pending;
    if (work === undefined || this.#stopped || !this.#state.holds(record)) return undefined;
    if (record.started !== 'yes' && work.subject.kind === 'pod') {
      const verdict = this.#mayStart(record, work.subject.pod);
      if (verdict === 'never') this.#finish(record, work, 'it was never started');
      if (verdict === 'later') this.#wait(record);
      if (verdict !== 'now') return undefined;
      this.#start(record, work, work.subject.pod);
    }
    this.#deps.queue.begin(record.uid);
    record.pending = undefined;
    record.active = merged(record.active, work);
    return work;
  }

  #mayStart(record: WorkerRecord, pod: Pod): 'now' | 'later' | 'never' {
    if (!isStaticPod(pod)) return 'now';
    // A terminating pod starts no container any more, so its full name does not matter; containers
    // that the runtime has must be stopped.
    if (record.lifecycle.terminationRequested) return record.wasObserved ? 'now' : 'never';
    return this.#state.tryPass(record) ? 'now' : 'later';
  }

  #start(record: WorkerRecord, work: PodWork, pod: Pod): void {
    record.started = 'yes';
    const sinceStamp = work.startStamp ?? record.addedStamp;
    this.#deps.metrics?.started(pod.spec.containers.length, this.#deps.clock.stamp() - sinceStamp);
  }

  /**
   * The pod that holds the full name wakes this pod when it finishes; the queue entry is only a
   * fallback.
   */
  #wait(record: WorkerRecord): void {
    this.#deps.queue.enqueue(record.uid, blockedDelayMs(this.#deps.random));
    if (record.started === 'waiting') return;
    record.started = 'waiting';
    const holder = this.#state.holderOf(record.fullName) ?? 'before it';
    const message = `waits until the pod ${holder} of the same name has terminated`;
    this.#deps.journal.step(record.uid, { stage: 'seen', outcome: 'waiting', message });
  }

  #conclude(record: WorkerRecord, work: PodWork, end: IterationEnd): void {
    if (end.kind === 'cleaned-up') {
      this.#finish(record, work, 'all its resources are released');
      return;
    }
    if (end.kind === 'runtime-pod-stopped') {
      this.wake(this.#state.finish(record, 'no container of it runs any more'));
      this.wake(this.#state.drop(record));
    } else {
      this.#requeue(record, this.#advance(record, end));
    }
    this.#measure(work, work.updateType);
  }

  #finish(record: WorkerRecord, work: PodWork, why: string): void {
    this.wake(this.#state.finish(record, why));
    this.#measure(work, 'terminated');
  }

  /** Moves the pod to its next state if the sync result requires this. */
  #advance(
    record: WorkerRecord,
    end: Exclude<IterationEnd, { kind: 'cleaned-up' | 'runtime-pod-stopped' }>,
  ): SyncEnd {
    switch (end.kind) {
      case 'failed':
        this.#logFailure(record, end.error);
        return end;
      case 'cancelled':
        this.#deps.log.v(2)?.info('Cancelled pod sync', fieldsOf(record));
        return { kind: 'failed', error: undefined };
      case 'stopped':
        record.failure = undefined;
        return this.#stoppedRunning(record);
      case 'synced':
        record.failure = undefined;
        return end.pod === 'terminal' ? this.#endedByItself(record) : { kind: 'ok' };
    }
  }

  /** Logs a failure of the sync; a failure that repeats is logged once. */
  #logFailure(record: WorkerRecord, error: unknown): void {
    const text = describeError(error);
    const fields = fieldsOf(record);
    if (record.failure === text)
      this.#deps.log.v(2)?.info('Pod sync still fails', { ...fields, because: text });
    else this.#deps.log.error('Failed to sync pod', error, fields);
    record.failure = text;
  }

  #stoppedRunning(record: WorkerRecord): SyncEnd {
    const sinceMs = this.#deps.clock.monotonicMs();
    record.lifecycle.enter({ state: 'terminated', sinceMs }, 'no container of it runs any more');
    this.#state.notifyStopped(record);
    record.pending ??= record.active;
    return { kind: 'transition' };
  }

  /**
   * A pod whose containers all exited must terminate. A termination requested during the sync keeps
   * its grace period.
   */
  #endedByItself(record: WorkerRecord): SyncEnd {
    if (!record.lifecycle.terminationRequested) {
      const sinceMs = this.#deps.clock.monotonicMs();
      record.lifecycle.enter(
        { state: 'terminating', sinceMs, graceSeconds: undefined, progress: 'seen' },
        'all its containers have exited',
      );
    }
    record.pending ??= record.active;
    return { kind: 'transition' };
  }

  /**
   * A sync that was requested during this sync and is due earlier remains scheduled, because this
   * sync may have used an older observation.
   */
  #requeue(record: WorkerRecord, end: SyncEnd): void {
    const { queue, random, syncFrequencyMs, clock } = this.#deps;
    const monotonicMs = clock.monotonicMs();
    queue.add(record.uid, requeueDelayMs(end, { syncFrequencyMs, random, monotonicMs }));
  }

  #measure({ startStamp }: PodWork, operation: PodWork['updateType'] | 'terminated'): void {
    if (startStamp === undefined) return;
    this.#deps.metrics?.worked(operation, this.#deps.clock.stamp() - startStamp);
  }
}
