import { isStaticPod, isTerminalPhase, type Pod, type PodUid } from '../pods/index.ts';
import { acceptUpdate, type OfferedUpdate } from './accept-update.ts';
import type { Lifecycle } from './lifecycle.ts';
import { adoptOrphan, type WorkerSummary, workerSummary } from './orphans.ts';
import type { PodWorkerQueries } from './queries.ts';
import { mayRunAny } from './syncer.ts';
import {
  type KillOptions,
  replacing,
  subjectOf,
  type UpdatePodOptions,
  uidOf,
  type WorkSubject,
} from './updates.ts';
import { type LoopDeps, WorkerLoops } from './worker-loops.ts';
import type { WorkerRecord } from './worker-record.ts';
import type { WorkerState } from './worker-state.ts';

export interface PodWorkersDeps extends LoopDeps {
  readonly state: WorkerState;
  readonly queries: PodWorkerQueries;
  /**
   * Returns whether all sources that could have the pod have reported their pods. If undefined, all
   * sources count as ready.
   */
  readonly areSourcesReadyFor?: ((uid: PodUid) => boolean) | undefined;
  /** Returns the pod with its allocated resources instead of those of its spec. */
  readonly withAllocation?: ((pod: Pod) => Pod) | undefined;
}

/** A worker whose current sync takes too long. */
export interface BusyWorker {
  readonly uid: PodUid;
  readonly name: string;
  readonly state: Lifecycle['state'];
  readonly busyMs: number;
}

/**
 * One worker per pod: at most one sync of a pod runs at a time, the newest update replaces the
 * pending one, and termination takes precedence. Updates take effect before the method returns;
 * syncs run later, concurrently.
 */
export class PodWorkers implements AsyncDisposable {
  readonly queries: PodWorkerQueries;
  readonly #deps: PodWorkersDeps;
  readonly #state: WorkerState;
  readonly #loops: WorkerLoops;

  constructor(deps: PodWorkersDeps) {
    this.#deps = deps;
    this.#state = deps.state;
    this.queries = deps.queries;
    this.#loops = new WorkerLoops(deps, deps.state);
  }

  /**
   * The numbers of pods, of full names of static pods, and of running worker loops: all zero on a
   * node without pods.
   */
  get sizes(): Readonly<Record<'pods' | 'names' | 'loops', number>> {
    return { pods: this.#state.size, names: this.#state.names, loops: this.#loops.running };
  }

  has(uid: PodUid): boolean {
    return this.#state.find(uid) !== undefined;
  }

  /** The pods that have a worker. */
  uids(): ReadonlySet<PodUid> {
    return new Set([...this.#state].map(({ uid }) => uid));
  }

  /**
   * Returns the pod last passed to a syncer, whose spec every component that acts on the pod must
   * use.
   */
  activePod(uid: PodUid): { readonly pod: Pod; readonly mirrorPod: Pod | undefined } | undefined {
    return this.#state.activePod(uid);
  }

  /** Passes a pod, or the request to kill it, to its worker. */
  updatePod(options: UpdatePodOptions): void {
    const given = subjectOf(options);
    if (given === undefined || this.#loops.stopped) {
      this.#ignore(
        options,
        given === undefined ? 'a pod of the runtime can only be killed' : 'kubeling ends',
      );
      return;
    }
    const known = this.#state.find(uidOf(given));
    const record = known ?? this.#add(given);
    this.#accept(record, options, given, known === undefined ? 'first' : 'again');
  }

  /**
   * Terminates a rejected pod immediately. If containers of it remain from before a kubelet
   * restart, they are stopped first; otherwise the pod is only cleaned up.
   */
  rejectPod(pod: Pod): void {
    if (this.#state.find(pod.metadata.uid) === undefined && !this.#loops.stopped)
      this.#terminateAtOnce(pod, {});
  }

  /**
   * Continues the termination of a pod that a previous kubelet was terminating, within its
   * remaining grace period. A static pod, which is still desired, starts again afterwards.
   */
  resumeTermination(pod: Pod, graceSeconds: number): void {
    const { uid } = pod.metadata;
    if (this.#state.find(uid) !== undefined || this.#loops.stopped) return;
    const record = this.#terminateAtOnce(pod, { graceOverrideSeconds: graceSeconds });
    // An API pod that was terminating although it was not deleted had finished or was evicted, so
    // it does not start again.
    record.restartRequested = isStaticPod(pod);
    // The previous kubelet started the pod, so it may hold resources even if no container runs.
    record.wasObserved = true;
  }

  /**
   * Drops finished pods that are no longer desired or that must start again, and terminates all
   * other pods that are no longer desired. Returns the remaining workers. No pod may be added while
   * the desired pods are collected.
   */
  syncKnownPods(desired: Iterable<Pod>): ReadonlyMap<PodUid, WorkerSummary> {
    const desiredUids = new Set<PodUid>();
    for (const pod of desired) desiredUids.add(pod.metadata.uid);
    this.#state.setAllSourcesReady();
    const left = new Map<PodUid, WorkerSummary>();
    for (const record of this.#state) {
      const orphan = !desiredUids.has(record.uid) && this.#areSourcesReadyFor(record.uid);
      if (this.#mayDrop(record, orphan)) this.#loops.wake(this.#state.drop(record));
      else left.set(record.uid, workerSummary(record, orphan));
    }
    return left;
  }

  /** Returns the workers whose current sync runs longer than the limit, for the watchdog. */
  busyWorkers(longerThanMs = 5 * 60_000): readonly BusyWorker[] {
    const nowMs = this.#deps.clock.monotonicMs();
    return [...this.#state].flatMap(({ uid, fullName, lifecycle, run }) => {
      const busyMs = run.state === 'busy' ? nowMs - run.sinceMs : 0;
      return busyMs > longerThanMs ? [{ uid, name: fullName, state: lifecycle.state, busyMs }] : [];
    });
  }

  /**
   * Cancels all running syncs and waits for them. Pods keep running; no update is accepted any
   * more.
   */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#loops.stop('kubeling ends');
  }

  #add(given: WorkSubject): WorkerRecord {
    const record = this.#state.add(given, this.#firstState(given));
    // A finished pod was started by a previous kubelet, so it may hold resources even if no
    // container runs.
    record.wasObserved = given.kind === 'pod' && isTerminalPhase(given.pod.status.phase);
    return record;
  }

  /** Creates the record of a pod that terminates from the start. */
  #terminateAtOnce(pod: Pod, kill: KillOptions): WorkerRecord {
    const given: WorkSubject = { kind: 'pod', pod };
    const alive = this.#couldRun(pod.metadata.uid);
    const record = this.#state.add(given, alive ? { state: 'syncing' } : this.#terminatedNow());
    record.wasObserved = alive;
    this.#accept(record, { updateType: 'kill', pod, kill }, given, 'first');
    return record;
  }

  #areSourcesReadyFor(uid: PodUid): boolean {
    return this.#deps.areSourcesReadyFor?.(uid) ?? true;
  }

  #accept(
    record: WorkerRecord,
    options: UpdatePodOptions,
    given: WorkSubject,
    sight: OfferedUpdate['observation'],
  ): void {
    const nowMs = this.#deps.clock.monotonicMs();
    const accepted = acceptUpdate({ record, options, given, observation: sight, nowMs });
    if (accepted.kind === 'ignored') {
      this.#ignore(options, accepted.why);
      return;
    }
    if (accepted.waits === 'no') this.#state.notify(options.kill?.done);
    if (record.started !== 'yes' && record.lifecycle.terminationRequested)
      this.#loops.wake(this.#state.leaveGate(record));
    const { updateType, mirrorPod, startStamp } = options;
    const subject = this.#allocated(accepted.subject);
    record.pending = replacing(record.pending, { updateType, subject, mirrorPod, startStamp });
    this.#loops.wake(record);
    if (accepted.cancel !== undefined) this.#loops.cancel(record, accepted.cancel);
  }

  /**
   * Ignores an update without effect. A caller that waits for the pod to stop is notified
   * immediately.
   */
  #ignore({ pod, runningPod, updateType, kill }: UpdatePodOptions, why: string): void {
    this.#deps.log.v(4)?.info('Ignored pod update', {
      pod: pod?.metadata.name ?? runningPod?.name,
      podUid: pod?.metadata.uid ?? runningPod?.uid,
      updateType,
      why,
    });
    this.#state.notify(kill?.done);
  }

  /**
   * A pod that had finished before it was first observed holds no resources. It counts as
   * terminated from the start, so that it does not block the admission of other pods; its clean-up
   * still runs.
   */
  #firstState(subject: WorkSubject): Lifecycle {
    const over =
      subject.kind === 'pod' &&
      isTerminalPhase(subject.pod.status.phase) &&
      !this.#couldRun(subject.pod.metadata.uid);
    return over ? this.#terminatedNow() : { state: 'syncing' };
  }

  #terminatedNow(): Lifecycle {
    return { state: 'terminated', sinceMs: this.#deps.clock.monotonicMs() };
  }

  /** Whether containers of the pod may run; also true if the observation of the pod failed. */
  #couldRun(uid: PodUid): boolean {
    try {
      return mayRunAny(this.#deps.observed.get(uid));
    } catch {
      return true;
    }
  }

  #allocated(subject: WorkSubject): WorkSubject {
    const { withAllocation } = this.#deps;
    if (subject.kind !== 'pod' || withAllocation === undefined) return subject;
    return { kind: 'pod', pod: withAllocation(subject.pod) };
  }

  #mayDrop(record: WorkerRecord, orphan: boolean): boolean {
    if (record.lifecycle.state === 'finished') return orphan || record.restartRequested;
    if (!orphan) return false;
    const fate = adoptOrphan(record, this.#deps.clock.monotonicMs());
    if (fate.kind === 'forget') return true;
    if (fate.cancel !== undefined) this.#loops.cancel(record, fate.cancel);
    // The sync loop requests syncs for desired pods only, so this call is the only retry of the
    // termination of a pod that is no longer desired.
    this.#loops.replay(record);
    return false;
  }
}
