import { type Clock, KubelingError, type Logger, LruMap } from '../lib/index.ts';
import { isStaticPod, type Pod, type PodFullName, type PodJournal, type PodUid } from '../pods/index.ts';
import { historyStep, type Lifecycle, PodLifecycle, type Transition } from './lifecycle.ts';
import type { WorkerObserver } from './metrics.ts';
import { StartGate } from './start-gate.ts';
import { podOf, uidOf, type WorkSubject } from './updates.ts';
import { isStaticRecord, newRecord, type WorkerRecord } from './worker-record.ts';

export interface WorkerStateDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly journal: PodJournal;
  readonly metrics?: WorkerObserver | undefined;
  readonly queue: { forget(uid: PodUid): void };
}

const rememberedEnds = 1_000;

/**
 * The records of all pods that have a worker, and the static pod that holds each full name. This
 * class runs no syncs, so the components of the kubelet that only read it can be built before the
 * workers.
 */
export class WorkerState implements Iterable<WorkerRecord> {
  readonly #deps: WorkerStateDeps;
  readonly #records = new Map<PodUid, WorkerRecord>();
  readonly #gate = new StartGate();
  /**
   * When the last sync of each dropped pod ended: a new pod with that UID needs a newer
   * observation.
   */
  readonly #ends = new LruMap<PodUid, number>({ capacity: rememberedEnds });
  /** Whether housekeeping has passed the desired pods of all sources to the workers. */
  #areAllSourcesReady = false;

  constructor(deps: WorkerStateDeps) {
    this.#deps = deps;
  }

  get areAllSourcesReady(): boolean {
    return this.#areAllSourcesReady;
  }

  get size(): number {
    return this.#records.size;
  }

  /** The number of full names that static pods hold or wait for. */
  get names(): number {
    return this.#gate.size;
  }

  [Symbol.iterator](): Iterator<WorkerRecord> {
    return this.#records.values();
  }

  find(uid: PodUid): WorkerRecord | undefined {
    return this.#records.get(uid);
  }

  /**
   * Returns the pod and mirror pod last passed to a syncer, whose spec every component that acts on
   * the pod must use.
   */
  activePod(uid: PodUid): { readonly pod: Pod; readonly mirrorPod: Pod | undefined } | undefined {
    const active = this.#records.get(uid)?.active;
    const pod = podOf(active);
    return pod === undefined ? undefined : { pod, mirrorPod: active?.mirrorPod };
  }

  /** Whether no container of the pod runs or will be started any more. */
  isTerminated(uid: PodUid): boolean {
    return this.#records.get(uid)?.lifecycle.ended ?? false;
  }

  isTerminationRequested(uid: PodUid): boolean {
    return this.#records.get(uid)?.lifecycle.terminationRequested ?? false;
  }

  setAllSourcesReady(): void {
    this.#areAllSourcesReady = true;
  }

  /** Whether the record is the current one of its pod, not one that was dropped. */
  holds(record: WorkerRecord): boolean {
    return this.#records.get(record.uid) === record;
  }

  holderOf(name: PodFullName): PodUid | undefined {
    return this.#gate.holder(name);
  }

  tryPass(record: WorkerRecord): boolean {
    return this.#gate.tryPass(record.fullName, record.uid);
  }

  add(subject: WorkSubject, first: Lifecycle): WorkerRecord {
    const uid = uidOf(subject);
    const lifecycle = new PodLifecycle(first, {
      entered: (transition) => this.#entered(uid, transition),
      rejected: (transition) => this.#refused(uid, transition),
    });
    const record = newRecord(subject, lifecycle, this.#deps.clock.stamp());
    record.lastSyncEnd = this.#ends.get(uid) ?? record.lastSyncEnd;
    this.#records.set(uid, record);
    const queues = subject.kind === 'pod' && isStaticPod(subject.pod) && !lifecycle.terminationRequested;
    if (queues) this.#gate.join(record.fullName, uid);
    return record;
  }

  /**
   * Marks the pod as finished. Returns the record of the pod that waited for its full name; the
   * caller must wake that pod.
   */
  finish(record: WorkerRecord, why: string): WorkerRecord | undefined {
    record.lifecycle.enter({ state: 'finished', sinceMs: this.#deps.clock.monotonicMs() }, why);
    record.pending = undefined;
    return this.#release(record);
  }

  /**
   * Drops the record of the pod. Returns the record of the pod that waited for its full name; the
   * caller must wake that pod.
   */
  drop(record: WorkerRecord): WorkerRecord | undefined {
    this.#records.delete(record.uid);
    this.#ends.set(record.uid, record.lastSyncEnd);
    const waiter = this.#release(record);
    this.#deps.log.v(4)?.info('Dropped pod worker', fieldsOf(record));
    return waiter;
  }

  /**
   * Releases the full name of the pod. Returns the record of the pod that waited for the name; the
   * caller must wake that pod.
   */
  leaveGate(record: WorkerRecord): WorkerRecord | undefined {
    const next = this.#gate.leave(record.fullName, record.uid);
    return next === undefined ? undefined : this.#records.get(next);
  }

  /** Calls the callbacks that wait until no container of the pod runs any more. */
  notifyStopped(record: WorkerRecord): void {
    record.statusFn = undefined;
    for (const done of record.done.splice(0)) this.notify(done);
  }

  notify(done: (() => void) | undefined): void {
    try {
      done?.();
    } catch (error) {
      this.#deps.log.error('Pod-stopped callback failed', error);
    }
  }

  #release(record: WorkerRecord): WorkerRecord | undefined {
    this.notifyStopped(record);
    this.#deps.queue.forget(record.uid);
    return this.leaveGate(record);
  }

  #entered(uid: PodUid, transition: Transition): void {
    const { from, to, why } = transition;
    const pod = this.#records.get(uid)?.fullName;
    this.#deps.log.info('Pod worker changed state', { pod, podUid: uid, from, to, why });
    this.#deps.journal.step(uid, historyStep(transition));
    this.#deps.metrics?.entered(transition);
  }

  #refused(uid: PodUid, transition: Transition): void {
    const { from, to, why } = transition;
    const problem = new KubelingError(
      'BUG',
      `Cannot move a pod from state ${from} to ${to}: there is no such transition`,
    );
    this.#deps.log.error('Rejected invalid pod worker transition', problem, { podUid: uid, why });
    this.#deps.metrics?.rejected(transition);
  }
}

/** Returns the pod's fields for log messages. */
export function fieldsOf(record: WorkerRecord): Record<string, unknown> {
  const { fullName, uid, lifecycle } = record;
  return { pod: fullName, podUid: uid, state: lifecycle.state, static: isStaticRecord(record) };
}
