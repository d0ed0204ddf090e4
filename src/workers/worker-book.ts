import { type Clock, KubelingError, type Logger, LruMap } from '../lib/index.ts';
import { isStaticPod, type PodFullName, type PodJournal, type PodUid } from '../pods/index.ts';
import { type Lifecycle, PodLifecycle, type Transition } from './lifecycle.ts';
import type { WorkerObserver } from './metrics.ts';
import { StartGate } from './start-gate.ts';
import { transitionStep } from './story.ts';
import { uidOf, type WorkSubject } from './updates.ts';
import { isStaticRecord, newRecord, type WorkerRecord } from './worker-record.ts';

export interface BookDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly journal: PodJournal;
  readonly metrics?: WorkerObserver | undefined;
  readonly queue: { forget(uid: PodUid): void };
}

const rememberedEnds = 1_000;

/** All pods the workers know, and who may run under which name. Whoever is let go here leaves nothing behind. */
export class WorkerBook implements Iterable<WorkerRecord> {
  readonly #deps: BookDeps;
  readonly #records = new Map<PodUid, WorkerRecord>();
  readonly #gate = new StartGate();
  /** When the last sync of a pod ended that was forgotten since: one that comes again under its UID is looked at anew. */
  readonly #ends = new LruMap<PodUid, number>({ capacity: rememberedEnds });
  /** Makes the worker of a pod look whether it may go on. */
  readonly #wake: (record: WorkerRecord) => void;

  constructor(deps: BookDeps, wake: (record: WorkerRecord) => void) {
    this.#deps = deps;
    this.#wake = wake;
  }

  get size(): number {
    return this.#records.size;
  }

  /** How many names of static pods are held or waited for. */
  get names(): number {
    return this.#gate.size;
  }

  [Symbol.iterator](): Iterator<WorkerRecord> {
    return this.#records.values();
  }

  find(uid: PodUid): WorkerRecord | undefined {
    return this.#records.get(uid);
  }

  /** Whether it is this very record that is kept under its UID, not one that was forgotten. */
  holds(record: WorkerRecord): boolean {
    return this.#records.get(record.uid) === record;
  }

  holderOf(name: PodFullName): PodUid | undefined {
    return this.#gate.holder(name);
  }

  tryPass(record: WorkerRecord): boolean {
    return this.#gate.tryPass(record.fullName, record.uid);
  }

  meet(subject: WorkSubject, first: Lifecycle): WorkerRecord {
    const uid = uidOf(subject);
    const lifecycle = new PodLifecycle(first, {
      entered: (transition) => this.#entered(uid, transition),
      refused: (transition) => this.#refused(uid, transition),
    });
    const record = newRecord(subject, lifecycle, this.#deps.clock.stamp());
    record.lastSyncEnd = this.#ends.get(uid) ?? record.lastSyncEnd;
    this.#records.set(uid, record);
    const queues = subject.kind === 'pod' && isStaticPod(subject.pod) && !lifecycle.terminationRequested;
    if (queues) this.#gate.join(record.fullName, uid);
    return record;
  }

  finish(record: WorkerRecord, why: string): void {
    record.lifecycle.enter({ state: 'finished', sinceMs: this.#deps.clock.monotonicMs() }, why);
    record.pending = undefined;
    this.#letGo(record);
  }

  forget(record: WorkerRecord): void {
    this.#records.delete(record.uid);
    this.#ends.set(record.uid, record.lastSyncEnd);
    this.#letGo(record);
    this.#deps.log.v(4)?.info('Forgot a pod', fieldsOf(record));
  }

  /** Whoever waited for the name starts now, not when it next happens to be looked at. */
  leaveGate(record: WorkerRecord): void {
    const next = this.#gate.leave(record.fullName, record.uid);
    const waiter = next === undefined ? undefined : this.#records.get(next);
    if (waiter !== undefined) this.#wake(waiter);
  }

  /** Nothing of the pod runs any more. */
  tellStopped(record: WorkerRecord): void {
    record.statusFn = undefined;
    for (const done of record.done.splice(0)) this.tell(done);
  }

  tell(done: (() => void) | undefined): void {
    try {
      done?.();
    } catch (error) {
      this.#deps.log.error('Somebody who waited for a pod to stop failed', error);
    }
  }

  #letGo(record: WorkerRecord): void {
    this.tellStopped(record);
    this.#deps.queue.forget(record.uid);
    this.leaveGate(record);
  }

  #entered(uid: PodUid, transition: Transition): void {
    const { from, to, why } = transition;
    const pod = this.#records.get(uid)?.fullName;
    this.#deps.log.info('A pod enters its next state', { pod, podUid: uid, from, to, why });
    this.#deps.journal.step(uid, transitionStep(transition));
    this.#deps.metrics?.entered(transition);
  }

  #refused(uid: PodUid, transition: Transition): void {
    const { from, to, why } = transition;
    const problem = new KubelingError(
      'BUG',
      `Cannot take a pod from ${from} to ${to}: there is no such step`,
    );
    this.#deps.log.error('A step of a pod was refused', problem, { podUid: uid, why });
    this.#deps.metrics?.refused(transition);
  }
}

/** For logs. */
export function fieldsOf(record: WorkerRecord): Record<string, unknown> {
  const { fullName, uid, lifecycle } = record;
  return { pod: fullName, podUid: uid, state: lifecycle.state, static: isStaticRecord(record) };
}
