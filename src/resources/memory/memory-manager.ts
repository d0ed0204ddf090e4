import type { Container } from '../../kinds/index.ts';
import { formatQuantity, KubelingError, quantityOf } from '../../lib/index.ts';
import {
  hugePageResource,
  hugePageSizeName,
  initContainersOf,
  isSidecar,
  type Pod,
  type PodUid,
} from '../../pods/index.ts';
import type { Rejection } from '../admission/index.ts';
import type { MemoryObserver } from '../exclusive/metrics.ts';
import { StateCheckpoint, type StateCheckpointDeps } from '../exclusive/state-checkpoint.ts';
import type { AllocationTerms, HintProvider, TopologyHints } from '../topology/hint-provider.ts';
import { encodeMemoryCheckpoint, restoreMemoryState } from './memory-checkpoint.ts';
import { blocksOf, type MemoryBlock, type MemoryState, withoutBlocks } from './memory-state.ts';
import { isPinned, type StaticMemoryPolicy } from './static-memory-policy.ts';

export interface MemoryManagerDeps extends StateCheckpointDeps {
  readonly policy: StaticMemoryPolicy;
  readonly observer?: MemoryObserver | undefined;
}

/** Applies the static policy of the memory manager and persists its assignments. */
export class MemoryManager implements HintProvider {
  readonly #deps: MemoryManagerDeps;
  readonly #checkpoint: StateCheckpoint<MemoryState>;

  constructor(deps: MemoryManagerDeps) {
    const { policy } = deps;
    this.#deps = deps;
    this.#checkpoint = new StateCheckpoint(deps, {
      owner: 'memory manager',
      initialState: policy.initialState,
      encode: (state) => encodeMemoryCheckpoint({ policyName: 'Static', state }),
      restore: (text, fromRuntime) => restoreMemoryState(text, policy, fromRuntime),
      without: withoutBlocks,
    });
  }

  /** Restores the memory assignments of a previous kubelet. */
  async restore(signal: AbortSignal): Promise<void> {
    await this.#checkpoint.open(signal);
  }

  isRequestedBy(pod: Pod): boolean {
    return isPinned(pod);
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
    const { policy, observer } = this.#deps;
    const before = this.#checkpoint.current();
    if (!isPinned(pod)) return undefined;
    observer?.requested();
    try {
      this.#checkpoint.put(policy.allocate(before, pod, container, affinity));
    } catch (error) {
      observer?.failed();
      throw error;
    }
    await this.#checkpoint.save();
    return undefined;
  }

  /** Returns all allocatable memory by NUMA node. */
  get allocatable(): readonly MemoryBlock[] {
    return [...this.#deps.policy.initialState.machine].flatMap(([id, { memoryMap }]) =>
      [...memoryMap].flatMap(([type, { allocatable: size }]) =>
        size > 0 ? [{ numaAffinity: [id], type, size }] : [],
      ),
    );
  }

  /** Returns the memory blocks assigned to the container. */
  memoryOf(uid: PodUid, container: string): readonly MemoryBlock[] {
    return blocksOf(this.#checkpoint.state, uid, container) ?? [];
  }

  /**
   * Returns the NUMA nodes for a container that is about to be created, such as 0,1; empty for any.
   * Releases the memory of exited init containers of the pod.
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
    let { state } = this.#checkpoint;
    for (const previous of initContainersOf(pod)) {
      if (previous.name === container) break;
      if (!isSidecar(previous) && blocksOf(state, uid, previous.name) !== undefined)
        state = withoutBlocks(state, uid, previous.name);
    }
    this.#checkpoint.put(state);
  }
}

interface Reservations {
  readonly reserved: readonly {
    readonly numaNode: number;
    readonly limits: ReadonlyMap<string, bigint>;
  }[];
  readonly required: ReadonlyMap<string, bigint>;
}

/**
 * Validates the reserved memory of each NUMA node. The sum must equal the memory reserved on the
 * node: otherwise the allocatable memory of the node and of its NUMA nodes would differ. Throws
 * ALLOCATION_CONFIG.
 */
export function validateReservedMemory(
  { reserved, required }: Reservations,
  numaNodes: readonly { readonly id: number }[],
): ReadonlyMap<number, ReadonlyMap<string, bigint>> {
  const sums = new Map<string, bigint>();
  for (const { numaNode, limits } of reserved) {
    if (!numaNodes.some(({ id }) => id === numaNode))
      fail(
        `the reserved memory configuration references a NUMA node ${numaNode} that does not exist on this machine`,
      );
    for (const [type, bytes] of limits) sums.set(type, (sums.get(type) ?? 0n) + bytes);
  }
  for (const type of new Set([...sums.keys(), ...required.keys()])) {
    const [sum, wanted] = [sums.get(type) ?? 0n, required.get(type) ?? 0n];
    if (sum !== wanted)
      fail(
        `the total amount "${formatBytes(sum)}" of type "${type}" is not equal to the value "${formatBytes(wanted)}" determined by Node Allocatable feature: correct reservedMemory, or systemReserved, kubeReserved and evictionHard`,
      );
  }
  if ((sums.get('memory') ?? 0n) === 0n) fail('you should specify the system reserved memory');
  return new Map(reserved.map(({ numaNode }) => [numaNode, ofNode(reserved, numaNode)]));
}

function ofNode(reserved: Reservations['reserved'], id: number): ReadonlyMap<string, bigint> {
  return new Map(reserved.flatMap(({ numaNode, limits }) => (numaNode === id ? [...limits] : [])));
}

function formatBytes(bytes: bigint): string {
  return formatQuantity(quantityOf(bytes, 'BinarySI'));
}

function fail(message: string): never {
  throw new KubelingError('ALLOCATION_CONFIG', `Cannot allocate memory by NUMA node: ${message}`);
}

/** Returns the resource name of huge pages of the given size. */
export function hugePageResourceOf(pageBytes: number): string {
  return hugePageResource(hugePageSizeName(BigInt(pageBytes)));
}
