import type { Container } from '../../kinds/index.ts';
import type { Pod } from '../../pods/index.ts';
import type { Refusal } from '../admission/index.ts';

/** One way to give a container what it asks for: from these NUMA nodes. */
export interface TopologyHint {
  /** Ascending, none twice. Undefined: from wherever there is some. */
  readonly numaNodes: readonly number[] | undefined;
  /** Whether it needs no more NUMA nodes than it would on an empty machine. */
  readonly preferred: boolean;
}

/**
 * For each resource by its name every way to give it. Undefined, for one resource or for all, says that any NUMA node
 * will do; an empty list says that there is no way.
 */
export type TopologyHints = ReadonlyMap<string, readonly TopologyHint[] | undefined>;

export interface AllocationTerms {
  /** What the hints of all providers came to. Without a topology policy any NUMA node will do. */
  readonly affinity: TopologyHint;
  readonly signal: AbortSignal;
}

/**
 * Who gives out something that has its place on the machine: processors, memory, devices. Nobody else is asked or allotted
 * anything between the hints for a pod and its allocation. What a pod has got it keeps until it is inactive; whoever gave it
 * finds that out for himself.
 */
export interface HintProvider {
  /** Whether the pod asks for any of it; each may, unless given. */
  isRequestedBy?(pod: Pod): boolean;
  /** Waits for what is expected to come, as long as that is worth while. */
  ready?(pod: Pod, signal: AbortSignal): Promise<void>;
  /** Quick, without effect. A container that has its share already gets just the hint that it fits. */
  getTopologyHints(pod: Pod, container: Container): TopologyHints | undefined;
  /** The same for all of a pod together. */
  getPodTopologyHints(pod: Pod): TopologyHints | undefined;
  /**
   * Gives the container its share and notes it, also on the disk, before it answers. Asked again for one that has its share
   * already it changes nothing. Init containers are asked for first, in their order. Answers why the pod cannot run here where
   * that has a reason of its own name; throws when anything else goes wrong.
   */
  allocate(pod: Pod, container: Container, terms: AllocationTerms): Promise<Refusal | undefined>;
}

/** Any NUMA node will do. */
export const anywhere: TopologyHint = { numaNodes: undefined, preferred: true };

/** Nobody has looked where it could come from. */
export const unaligned: TopologyHint = { numaNodes: undefined, preferred: false };

/** Every choice of NUMA nodes, fewest first. There are twice as many with each node: only for machines that have few. */
export function* numaChoices(numaNodes: readonly number[]): Generator<readonly number[]> {
  for (let size = 1; size <= numaNodes.length; size++) yield* choices(numaNodes, size);
}

/** Every choice of that many, each in the order of the list. */
export function* choices<T>(items: readonly T[], size: number, from = 0): Generator<readonly T[]> {
  if (size === 0) {
    yield [];
    return;
  }
  for (let at = from; at <= items.length - size; at++) {
    const first = items[at] as T;
    for (const rest of choices(items, size - 1, at + 1)) yield [first, ...rest];
  }
}
