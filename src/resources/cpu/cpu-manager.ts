import type { Container } from '../../kinds/index.ts';
import { type Clock, HintLatch, type Logger } from '../../lib/index.ts';
import { initContainersOf, type Pod, type PodUid } from '../../pods/index.ts';
import type { Refusal } from '../admission/index.ts';
import type { RuntimePlacement } from '../runtime-placement.ts';
import { type StateFile, StateKeeper } from '../state-keeper.ts';
import type { AllocationTerms, HintProvider, TopologyHints } from '../topology/hint-provider.ts';
import { encodeCpuCheckpoint } from './cpu-checkpoint.ts';
import { type CpuSet, formatCpuSet, noCpus } from './cpu-set.ts';
import { assignedTo, type CpuState, exclusiveCpus, withoutAssignment } from './cpu-state.ts';
import type { CpuObserver } from './metrics.ts';
import { restoreCpuState } from './restore-cpu-state.ts';
import { exclusiveCpuCount, type StaticCpuPolicy } from './static-cpu-policy.ts';

export interface CpuManagerDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly policy: StaticCpuPolicy;
  readonly file: StateFile;
  /** Pods that use, or will use, anything of the node; undefined before all sources have told theirs. */
  readonly activePods: () => readonly Pod[] | undefined;
  /** Whether something of a pod may run that is not among them. */
  readonly mayRun: (uid: PodUid) => boolean;
  /** The containers of the pod that run now, with their ids. */
  readonly runningContainers: (uid: PodUid) => readonly RunningContainer[];
  readonly fromRuntime: (signal: AbortSignal) => Promise<readonly RuntimePlacement[]>;
  /** Moves a running container. */
  readonly update: (containerId: string, cpusetCpus: string, signal: AbortSignal) => Promise<void>;
  /** How often containers are looked at when nothing is known to have changed. */
  readonly reconcileMs: number;
  readonly observer?: CpuObserver | undefined;
}

export interface RunningContainer {
  readonly name: string;
  readonly id: string;
}

/** The static policy at work: who has which processors, noted on the disk and kept true in the runtime. */
export class CpuManager implements HintProvider {
  readonly #deps: CpuManagerDeps;
  readonly #keeper: StateKeeper;
  readonly #changes: HintLatch;
  #state: CpuState;
  /** Where running containers were last put, by their ids. */
  #placed: ReadonlyMap<string, string> = new Map();
  /** Where the next instance of a container was told to be made. */
  readonly #planned = new Map<PodUid, Map<string, string>>();

  constructor(deps: CpuManagerDeps) {
    this.#deps = deps;
    this.#state = deps.policy.initialState;
    this.#changes = new HintLatch(deps.clock);
    this.#keeper = new StateKeeper(deps.file, deps.logger, () =>
      encodeCpuCheckpoint({ policyName: 'static', state: this.#state }),
    );
  }

  /** Goes on from what an earlier kubelet has noted. */
  async open(signal: AbortSignal): Promise<void> {
    const { file, policy, logger, fromRuntime } = this.#deps;
    const { state, mended } = await restoreCpuState(await file.read(), policy, () => fromRuntime(signal));
    if (mended !== undefined) {
      const kept = formatCpuSet(exclusiveCpus(state));
      logger.warn('The checkpoint of the CPU manager is not good as it is: mended', { why: mended, kept });
    }
    this.#set(state);
    await this.#keeper.save();
  }

  isAskedBy(pod: Pod): boolean {
    return containersOf(pod).some((container) => exclusiveCpuCount(pod, container) > 0);
  }

  getTopologyHints(pod: Pod, container: Container): TopologyHints | undefined {
    this.#dropStale();
    return this.#deps.policy.hints(this.#state, pod, container);
  }

  getPodTopologyHints(pod: Pod): TopologyHints | undefined {
    this.#dropStale();
    return this.#deps.policy.podHints(this.#state, pod);
  }

  async allocate(
    pod: Pod,
    container: Container,
    { affinity }: AllocationTerms,
  ): Promise<Refusal | undefined> {
    this.#dropStale();
    const { policy, observer, logger } = this.#deps;
    const before = this.#state;
    try {
      const allocation = policy.allocate(before, pod, container, affinity);
      if (allocation.kind === 'shared') return undefined;
      observer?.requested();
      if (allocation.kind === 'refused') {
        observer?.failed();
        return allocation.refusal;
      }
      if (allocation.state !== before) {
        this.#set(allocation.state);
        observer?.allocated(allocation.cpus);
        const fields = { podUid: pod.metadata.uid, container: container.name };
        logger.info('A container has processors of its own', {
          ...fields,
          cpus: formatCpuSet(allocation.cpus),
        });
      }
    } catch (error) {
      observer?.requested();
      observer?.failed();
      throw error;
    }
    await this.#keeper.save();
    return undefined;
  }

  /** Those that belong to the container alone; none when it shares. */
  exclusiveCpus(uid: PodUid, container: string): CpuSet {
    return assignedTo(this.#state, uid, container) ?? noCpus;
  }

  /** Where an instance of the container that is about to be made has to run. */
  cpusetFor(uid: PodUid, container: string): string {
    const cpus = formatCpuSet(this.#cpusOf(uid, container));
    const planned = this.#planned.get(uid) ?? new Map<string, string>();
    this.#planned.set(uid, planned.set(container, cpus));
    return cpus;
  }

  /** All that containers may get for themselves. */
  get allocatable(): CpuSet {
    return this.#deps.policy.allocatable;
  }

  /** Runs until it is aborted: moves containers soon after something was assigned, and looks for what is free again. */
  async run(signal: AbortSignal): Promise<void> {
    for (;;) {
      await this.reconcile(signal);
      await this.#changes.wait(this.#deps.reconcileMs, signal);
      this.#changes.clear();
    }
  }

  /** Takes back what belongs to nobody any more, and moves containers that run where they no longer should. */
  async reconcile(signal: AbortSignal): Promise<void> {
    this.#dropStale();
    await this.#keeper.save();
    const placed = new Map<string, string>();
    for (const { metadata } of this.#deps.activePods() ?? []) {
      for (const container of this.#deps.runningContainers(metadata.uid)) {
        const where = await this.#place(metadata.uid, container, signal);
        if (where !== undefined) placed.set(container.id, where);
      }
    }
    if (this.#deps.activePods() !== undefined) this.#placed = placed;
  }

  /** Answers where the container is now; undefined when that is not sure. */
  async #place(
    uid: PodUid,
    { name, id }: RunningContainer,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    const wanted = formatCpuSet(this.#cpusOf(uid, name));
    const now = this.#placed.get(id) ?? this.#planned.get(uid)?.get(name);
    if (now === wanted || wanted === '') return wanted;
    try {
      await this.#deps.update(id, wanted, signal);
      return wanted;
    } catch (error) {
      signal.throwIfAborted();
      const fields = { podUid: uid, container: name, cpus: wanted };
      this.#deps.logger.error('Cannot move a container to other processors', error, fields);
      return undefined;
    }
  }

  #cpusOf(uid: PodUid, container: string): CpuSet {
    return assignedTo(this.#state, uid, container) ?? this.#state.defaultCpuSet;
  }

  /** A pod that is inactive, and a container that its pod no longer has, give back what they had. */
  #dropStale(): void {
    const active = this.#deps.activePods();
    if (active === undefined) return;
    const names = new Map(
      active.map((pod) => [pod.metadata.uid, new Set(containersOf(pod).map(({ name }) => name))]),
    );
    const isKept = (uid: PodUid, container: string) =>
      names.get(uid)?.has(container) ?? this.#deps.mayRun(uid);
    let state = this.#state;
    for (const [uid, own] of state.assignments)
      for (const container of own.keys())
        if (!isKept(uid, container)) state = withoutAssignment(state, uid, container);
    if (state !== this.#state) {
      this.#set(state);
      void this.#keeper.save();
    }
    for (const uid of this.#planned.keys()) if (!names.has(uid)) this.#planned.delete(uid);
  }

  #set(state: CpuState): void {
    this.#state = state;
    this.#changes.raise();
    this.#deps.observer?.changed(this.#deps.policy.available(state).size, exclusiveCpus(state));
  }
}

function containersOf(pod: Pod): readonly Container[] {
  return [...initContainersOf(pod), ...pod.spec.containers];
}
