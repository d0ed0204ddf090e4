import type { Container } from '../../kinds/index.ts';
import { type Clock, HintLatch } from '../../lib/index.ts';
import { initContainersOf, type Pod, type PodUid } from '../../pods/index.ts';
import type { Refusal } from '../admission/index.ts';
import type { CpuObserver } from '../exclusive/metrics.ts';
import { StateCheckpoint, type StateCheckpointDeps } from '../exclusive/state-checkpoint.ts';
import type { AllocationTerms, HintProvider, TopologyHints } from '../topology/hint-provider.ts';
import { type CpuSet, formatCpuSet, noCpus } from './cpu-set.ts';
import {
  assignedTo,
  type CpuState,
  encodeCpuCheckpoint,
  exclusiveCpus,
  restoreCpuState,
  withoutAssignment,
} from './cpu-state.ts';
import { exclusiveCpuCount, type StaticCpuPolicy } from './static-cpu-policy.ts';

export interface CpuManagerDeps extends StateCheckpointDeps {
  readonly clock: Clock;
  readonly policy: StaticCpuPolicy;
  /** The containers of the pod that run now, with their ids. */
  readonly runningContainers: (uid: PodUid) => readonly RunningContainer[];
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
  readonly #checkpoint: StateCheckpoint<CpuState>;
  readonly #changes: HintLatch;
  /** Where running containers were last put, by their ids. */
  #appliedCpusets: ReadonlyMap<string, string> = new Map();
  /** Where the next instance of a container was told to be made. */
  readonly #plannedCpusets = new Map<PodUid, Map<string, string>>();

  constructor(deps: CpuManagerDeps) {
    const { policy, observer } = deps;
    this.#deps = deps;
    this.#changes = new HintLatch(deps.clock);
    this.#checkpoint = new StateCheckpoint(deps, {
      owner: 'CPU manager',
      initialState: policy.initialState,
      encode: (state) => encodeCpuCheckpoint({ policyName: 'static', state }),
      restore: (text, fromRuntime) => restoreCpuState(text, policy, fromRuntime),
      without: withoutAssignment,
      onChange: (state) => {
        this.#changes.raise();
        observer?.changed(policy.available(state).size, exclusiveCpus(state));
      },
    });
  }

  /** Goes on from what an earlier kubelet has noted. */
  async restore(signal: AbortSignal): Promise<void> {
    await this.#checkpoint.open(signal);
  }

  isRequestedBy(pod: Pod): boolean {
    return [...initContainersOf(pod), ...pod.spec.containers].some(
      (container) => exclusiveCpuCount(pod, container) > 0,
    );
  }

  getTopologyHints(pod: Pod, container: Container): TopologyHints | undefined {
    return this.#deps.policy.hints(this.#checkpoint.current(), pod, container);
  }

  getPodTopologyHints(pod: Pod): TopologyHints | undefined {
    return this.#deps.policy.podHints(this.#checkpoint.current(), pod);
  }

  async allocate(
    pod: Pod,
    container: Container,
    { affinity }: AllocationTerms,
  ): Promise<Refusal | undefined> {
    const { policy, observer, logger } = this.#deps;
    const before = this.#checkpoint.current();
    try {
      const allocation = policy.allocate(before, pod, container, affinity);
      if (allocation.kind === 'shared') return undefined;
      observer?.requested();
      if (allocation.kind === 'refused') {
        observer?.failed();
        return allocation.refusal;
      }
      if (allocation.state !== before) {
        this.#checkpoint.put(allocation.state);
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
    await this.#checkpoint.save();
    return undefined;
  }

  /** Those that belong to the container alone; none when it shares. */
  exclusiveCpus(uid: PodUid, container: string): CpuSet {
    return assignedTo(this.#checkpoint.state, uid, container) ?? noCpus;
  }

  /** Where an instance of the container that is about to be made has to run. */
  cpusetFor(uid: PodUid, container: string): string {
    const cpus = formatCpuSet(this.#cpusOf(uid, container));
    const planned = this.#plannedCpusets.get(uid) ?? new Map<string, string>();
    this.#plannedCpusets.set(uid, planned.set(container, cpus));
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
    this.#checkpoint.current();
    await this.#checkpoint.save();
    const active = this.#deps.activePods();
    if (active === undefined) return;
    const uids = new Set(active.map(({ metadata }) => metadata.uid));
    for (const uid of this.#plannedCpusets.keys()) if (!uids.has(uid)) this.#plannedCpusets.delete(uid);
    const placed = new Map<string, string>();
    for (const uid of uids) {
      for (const container of this.#deps.runningContainers(uid)) {
        const where = await this.#applyCpuset(uid, container, signal);
        if (where !== undefined) placed.set(container.id, where);
      }
    }
    this.#appliedCpusets = placed;
  }

  /** Answers where the container is now; undefined when that is not sure. */
  async #applyCpuset(
    uid: PodUid,
    { name, id }: RunningContainer,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    const wanted = formatCpuSet(this.#cpusOf(uid, name));
    const now = this.#appliedCpusets.get(id) ?? this.#plannedCpusets.get(uid)?.get(name);
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
    const { state } = this.#checkpoint;
    return assignedTo(state, uid, container) ?? state.defaultCpuSet;
  }
}
