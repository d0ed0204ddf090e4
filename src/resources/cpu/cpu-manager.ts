import type { Container } from '../../kinds/index.ts';
import { type Clock, HintLatch } from '../../lib/index.ts';
import { initContainersOf, type Pod, type PodUid } from '../../pods/index.ts';
import type { Rejection } from '../admission/index.ts';
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
  /** Returns the running containers of the pod with their IDs. */
  readonly runningContainers: (uid: PodUid) => readonly RunningContainer[];
  /** Updates the cpuset of a running container. */
  readonly update: (containerId: string, cpusetCpus: string, signal: AbortSignal) => Promise<void>;
  /** The interval at which the cpusets of running containers are reconciled. */
  readonly reconcileMs: number;
  readonly observer?: CpuObserver | undefined;
}

export interface RunningContainer {
  readonly name: string;
  readonly id: string;
}

/**
 * Applies the static policy: persists the assignments and keeps the cpusets of the running
 * containers up to date.
 */
export class CpuManager implements HintProvider {
  readonly #deps: CpuManagerDeps;
  readonly #checkpoint: StateCheckpoint<CpuState>;
  readonly #changes: HintLatch;
  /** The cpuset last applied to each running container, by container ID. */
  #appliedCpusets: ReadonlyMap<string, string> = new Map();
  /**
   * For each container, the cpuset with which its newest instance was created or its next instance
   * will be created.
   */
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

  /** Restores the CPU assignments of a previous kubelet. */
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
  ): Promise<Rejection | undefined> {
    const { policy, observer, logger } = this.#deps;
    const before = this.#checkpoint.current();
    try {
      const allocation = policy.allocate(before, pod, container, affinity);
      if (allocation.kind === 'shared') return undefined;
      observer?.requested();
      if (allocation.kind === 'refused') {
        observer?.failed();
        return allocation.rejection;
      }
      if (allocation.state !== before) {
        this.#checkpoint.put(allocation.state);
        observer?.allocated(allocation.cpus);
        const fields = { podUid: pod.metadata.uid, container: container.name };
        logger.info('Allocated exclusive CPUs', {
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

  /** Returns the exclusive CPUs of the container; empty if it uses the shared pool. */
  exclusiveCpus(uid: PodUid, container: string): CpuSet {
    return assignedTo(this.#checkpoint.state, uid, container) ?? noCpus;
  }

  /** Returns the cpuset for a new instance of the container. */
  cpusetFor(uid: PodUid, container: string): string {
    const cpus = formatCpuSet(this.#cpusOf(uid, container));
    const planned = this.#plannedCpusets.get(uid) ?? new Map<string, string>();
    this.#plannedCpusets.set(uid, planned.set(container, cpus));
    return cpus;
  }

  /** Returns all CPUs that can be assigned exclusively, assigned or not. */
  get allocatable(): CpuSet {
    return this.#deps.policy.allocatable;
  }

  /**
   * Reconciles cpusets soon after each assignment and periodically. Resolves when the signal is
   * aborted.
   */
  async run(signal: AbortSignal): Promise<void> {
    for (;;) {
      await this.reconcile(signal);
      await this.#changes.wait(this.#deps.reconcileMs, signal);
      this.#changes.clear();
    }
  }

  /** Releases stale assignments and updates the cpusets of running containers. */
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

  /**
   * Updates the cpuset of a running container if necessary; returns the applied cpuset, or
   * undefined if the update has failed.
   */
  async #applyCpuset(
    uid: PodUid,
    { name, id }: RunningContainer,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    const desired = formatCpuSet(this.#cpusOf(uid, name));
    const now = this.#appliedCpusets.get(id) ?? this.#plannedCpusets.get(uid)?.get(name);
    if (now === desired || desired === '') return desired;
    try {
      await this.#deps.update(id, desired, signal);
      return desired;
    } catch (error) {
      signal.throwIfAborted();
      const fields = { podUid: uid, container: name, cpus: desired };
      this.#deps.logger.error('Failed to update the cpuset of a container', error, fields);
      return undefined;
    }
  }

  #cpusOf(uid: PodUid, container: string): CpuSet {
    const { state } = this.#checkpoint;
    return assignedTo(state, uid, container) ?? state.defaultCpuSet;
  }
}
