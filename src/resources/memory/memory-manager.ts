import type { Container } from '../../kinds/index.ts';
import type { Logger } from '../../lib/index.ts';
import { initContainersOf, isSidecar, type Pod, type PodUid } from '../../pods/index.ts';
import type { Refusal } from '../admission/index.ts';
import type { RuntimePlacement } from '../runtime-placement.ts';
import { type StateFile, StateKeeper } from '../state-keeper.ts';
import type { AllocationTerms, HintProvider, TopologyHints } from '../topology/hint-provider.ts';
import { encodeMemoryCheckpoint } from './memory-checkpoint.ts';
import { blocksOf, type MemoryBlock, type MemoryState, withoutBlocks } from './memory-state.ts';
import type { MemoryObserver } from './metrics.ts';
import { restoreMemoryState } from './restore-memory-state.ts';
import { getsPinned, type StaticMemoryPolicy } from './static-memory-policy.ts';

export interface MemoryManagerDeps {
  readonly logger: Logger;
  readonly policy: StaticMemoryPolicy;
  readonly file: StateFile;
  /** Pods that use, or will use, anything of the node; undefined before all sources have told theirs. */
  readonly activePods: () => readonly Pod[] | undefined;
  /** Whether something of a pod may run that is not among them. */
  readonly mayRun: (uid: PodUid) => boolean;
  readonly fromRuntime: (signal: AbortSignal) => Promise<readonly RuntimePlacement[]>;
  readonly observer?: MemoryObserver | undefined;
}

/** The static policy at work: who has memory of which NUMA nodes, noted on the disk. */
export class MemoryManager implements HintProvider {
  readonly #deps: MemoryManagerDeps;
  readonly #keeper: StateKeeper;
  #state: MemoryState;

  constructor(deps: MemoryManagerDeps) {
    this.#deps = deps;
    this.#state = deps.policy.initialState;
    this.#keeper = new StateKeeper(deps.file, deps.logger, () =>
      encodeMemoryCheckpoint({ policyName: 'Static', state: this.#state }),
    );
  }

  /** Goes on from what an earlier kubelet has noted. */
  async open(signal: AbortSignal): Promise<void> {
    const { file, policy, logger, fromRuntime } = this.#deps;
    const { state, mended } = await restoreMemoryState(await file.read(), policy, () => fromRuntime(signal));
    if (mended !== undefined) {
      const kept = [...state.assignments.keys()];
      logger.warn('The checkpoint of the memory manager is not good as it is: mended', { why: mended, kept });
    }
    this.#state = state;
    await this.#keeper.save();
  }

  isAskedBy(pod: Pod): boolean {
    return getsPinned(pod);
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
    const { policy, observer } = this.#deps;
    if (!getsPinned(pod)) return undefined;
    observer?.requested();
    try {
      this.#state = policy.allocate(this.#state, pod, container, affinity);
    } catch (error) {
      observer?.failed();
      throw error;
    }
    await this.#keeper.save();
    return undefined;
  }

  /** All that containers can have, by NUMA node. */
  get allocatable(): readonly MemoryBlock[] {
    return [...this.#deps.policy.initialState.machine].flatMap(([id, { memoryMap }]) =>
      [...memoryMap].flatMap(([type, { allocatable: size }]) =>
        size > 0 ? [{ numaAffinity: [id], type, size }] : [],
      ),
    );
  }

  /** What the container has. */
  memoryOf(uid: PodUid, container: string): readonly MemoryBlock[] {
    return blocksOf(this.#state, uid, container) ?? [];
  }

  /**
   * The NUMA nodes for a container that is about to be made, such as 0,1; empty for any. Init containers that come before
   * it have ended: what they had is free again.
   */
  memsFor(pod: Pod, container: string): string {
    this.#releaseBefore(pod, container);
    const nodes = new Set(
      this.memoryOf(pod.metadata.uid, container).flatMap(({ numaAffinity }) => numaAffinity),
    );
    return [...nodes].toSorted((one, other) => one - other).join(',');
  }

  #releaseBefore(pod: Pod, container: string): void {
    const { uid } = pod.metadata;
    const before = this.#state;
    for (const earlier of initContainersOf(pod)) {
      if (earlier.name === container) break;
      if (!isSidecar(earlier) && blocksOf(this.#state, uid, earlier.name) !== undefined)
        this.#state = withoutBlocks(this.#state, uid, earlier.name);
    }
    if (this.#state !== before) void this.#keeper.save();
  }

  #dropStale(): void {
    const active = this.#deps.activePods();
    if (active === undefined) return;
    const names = new Map(
      active.map((pod) => [
        pod.metadata.uid,
        new Set([...initContainersOf(pod), ...pod.spec.containers].map(({ name }) => name)),
      ]),
    );
    const isKept = (uid: PodUid, container: string) =>
      names.get(uid)?.has(container) ?? this.#deps.mayRun(uid);
    let state = this.#state;
    for (const [uid, own] of state.assignments)
      for (const container of own.keys())
        if (!isKept(uid, container)) state = withoutBlocks(state, uid, container);
    if (state === this.#state) return;
    this.#state = state;
    void this.#keeper.save();
  }
}
