import { abortable, type CollectedLogs, collectLogs, seededRandom, WorkQueue } from '../../src/lib/index.ts';
import type { ObservedPod, Pod, PodEvent, PodStep, PodUid, RuntimePod } from '../../src/pods/index.ts';
import { podUid } from '../../src/pods/index.ts';
import type { ObservedPods, PodSyncer, StatusFn, Transition, UpdateType } from '../../src/workers/index.ts';
import {
  PodWorkerQueries,
  PodWorkers,
  type PodWorkersDeps,
  WorkerState,
  type WorkerStateDeps,
} from '../../src/workers/index.ts';
import { observedOf, podOf } from './pod-sketch.ts';
import { settle, VirtualClock } from './virtual-clock.ts';

export type SyncKind = 'sync' | 'terminating' | 'terminating-runtime' | 'terminated';

/** A pending call of a method of the fake pod syncer, which the test completes. */
export interface HeldSync {
  readonly kind: SyncKind;
  readonly uid: PodUid;
  readonly pod: Pod | undefined;
  readonly runningPod: RuntimePod | undefined;
  readonly mirrorPod: Pod | undefined;
  readonly updateType: UpdateType | undefined;
  readonly graceSeconds: number | undefined;
  readonly statusFn: StatusFn | undefined;
  readonly observed: ObservedPod | undefined;
  readonly signal: AbortSignal;
  readonly requestRelist: () => void;
  readonly observeNow: ((signal: AbortSignal) => Promise<ObservedPod>) | undefined;
  resolve(result?: 'terminal' | 'not-terminal'): void;
  reject(error: unknown): void;
}

type Call = Omit<HeldSync, 'resolve' | 'reject'>;

/** Pod workers under virtual time with a fake syncer, whose calls the test completes one by one. */
export class WorkerFixture {
  readonly clock = new VirtualClock();
  readonly logs: CollectedLogs = collectLogs(this.clock);
  readonly queue = new WorkQueue<PodUid>(this.clock);
  readonly held: HeldSync[] = [];
  readonly calls: Call[] = [];
  readonly events: (PodEvent & { readonly uid: PodUid })[] = [];
  readonly steps: (PodStep & { readonly uid: PodUid })[] = [];
  readonly relists: { readonly uid: PodUid; readonly stamp: number }[] = [];
  readonly delays = new Map<PodUid, number>();
  readonly transitions: Transition[] = [];
  readonly refused: Transition[] = [];
  readonly worked: string[] = [];
  /**
   * A fake pod cache; by default every status is newer than required. A test may replace it to wait
   * for updates like the real cache.
   */
  readonly observed: { get: ObservedPods['get']; getNewerThan: ObservedPods['getNewerThan'] } = {
    get: (uid) => observedOf(uid),
    getNewerThan: async (uid) => observedOf(uid),
  };
  readonly asked: { readonly uid: PodUid; readonly stamp: number }[] = [];
  readonly workers: PodWorkers;
  /** Whether pending calls reject when they are cancelled, as correct syncers do. */
  listens = true;

  constructor({ areSourcesReadyFor }: Pick<PodWorkersDeps, 'areSourcesReadyFor'> = {}) {
    const shared = {
      clock: this.clock,
      log: this.logs.logger,
      journal: {
        event: (pod, event) => this.events.push({ ...event, uid: pod.metadata.uid }),
        step: (uid, step) => this.steps.push({ ...step, uid }),
      },
      queue: {
        enqueue: (uid, delayMs) => {
          this.delays.set(uid, delayMs);
          this.queue.enqueue(uid, delayMs);
        },
        add: (uid, delayMs) => {
          this.delays.set(uid, delayMs);
          this.queue.add(uid, delayMs);
        },
        begin: (uid) => this.queue.begin(uid),
        forget: (uid) => {
          this.delays.delete(uid);
          this.queue.forget(uid);
        },
      },
      metrics: {
        worked: (operation) => this.worked.push(operation),
        started: () => {},
        entered: (transition) => this.transitions.push(transition),
        rejected: (transition) => this.refused.push(transition),
      },
    } satisfies Partial<PodWorkersDeps & WorkerStateDeps>;
    const state = new WorkerState(shared);
    this.workers = new PodWorkers({
      ...shared,
      state,
      queries: new PodWorkerQueries(state, areSourcesReadyFor),
      areSourcesReadyFor,
      random: seededRandom(7),
      syncer: this.#syncer(),
      observed: {
        get: (uid) => this.observed.get(uid),
        getNewerThan: (uid, stamp, signal) => {
          this.asked.push({ uid, stamp });
          return this.observed.getNewerThan(uid, stamp, signal);
        },
      },
      requestRelist: (uid) => this.relists.push({ uid, stamp: this.clock.stamp() }),
      syncFrequencyMs: 60_000,
    });
  }

  /** Returns the kinds of all calls so far, or of those for one pod. */
  kinds(uid?: string): SyncKind[] {
    return this.calls.filter((call) => uid === undefined || call.uid === uid).map(({ kind }) => kind);
  }

  /** Runs all runnable tasks; returns the pending call. */
  async next(kind: SyncKind, uid?: string): Promise<HeldSync> {
    await settle();
    const found = this.held.find((call) => call.kind === kind && (uid === undefined || call.uid === uid));
    if (found === undefined)
      throw new Error(
        `No ${kind} of ${uid ?? 'any pod'} is pending; pending are ${JSON.stringify(this.held.map(({ kind, uid }) => `${kind} of ${uid}`))}`,
      );
    return found;
  }

  /** Completes the pending call and runs all following tasks. */
  async answer(kind: SyncKind, result?: 'terminal' | 'not-terminal', uid?: string): Promise<void> {
    (await this.next(kind, uid)).resolve(result);
    await settle();
  }

  async fail(kind: SyncKind, error: unknown, uid?: string): Promise<void> {
    (await this.next(kind, uid)).reject(error);
    await settle();
  }

  /** Adds a pod and completes its first sync. */
  async running(sketch: Parameters<typeof podOf>[0] = {}): Promise<Pod> {
    const pod = podOf(sketch);
    this.workers.updatePod({ updateType: 'create', pod });
    await this.answer('sync', 'not-terminal', pod.metadata.uid);
    return pod;
  }

  state(uid = 'uid-1'): string | undefined {
    return this.workers.syncKnownPods([podOf({ uid })]).get(podUid(uid))?.state;
  }

  #syncer(): PodSyncer {
    const nothing = {
      pod: undefined,
      runningPod: undefined,
      mirrorPod: undefined,
      updateType: undefined,
      graceSeconds: undefined,
      statusFn: undefined,
      observed: undefined,
      observeNow: undefined,
    };
    return {
      syncPod: async (context, signal) =>
        (await this.#hold({ ...nothing, ...context, kind: 'sync', uid: context.pod.metadata.uid, signal })) ??
        'not-terminal',
      syncTerminatingPod: async (context, signal) => {
        const uid = context.pod.metadata.uid;
        await this.#hold({ ...nothing, ...context, kind: 'terminating', uid, signal });
      },
      syncTerminatingRuntimePod: async (context, signal) => {
        const { uid } = context.runningPod;
        await this.#hold({ ...nothing, ...context, kind: 'terminating-runtime', uid, signal });
      },
      syncTerminatedPod: async (context, signal) => {
        const uid = context.pod.metadata.uid;
        await this.#hold({ ...nothing, ...context, kind: 'terminated', uid, signal });
      },
    };
  }

  #hold(call: Call): Promise<'terminal' | 'not-terminal' | undefined> {
    this.calls.push(call);
    const { promise, resolve, reject } = Promise.withResolvers<'terminal' | 'not-terminal' | undefined>();
    const done = () => void this.held.splice(this.held.indexOf(held), 1);
    const held: HeldSync = { ...call, resolve: (result) => resolve(result), reject };
    this.held.push(held);
    return (this.listens ? abortable(promise, call.signal) : promise).finally(done);
  }
}
