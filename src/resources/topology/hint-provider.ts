import type { Container } from '../../kinds/index.ts';
import type { Pod } from '../../pods/index.ts';
import type { Rejection } from '../admission/index.ts';

/** A set of NUMA nodes that can satisfy a request, in the topology manager. */
export interface TopologyHint {
  /** The NUMA nodes, ascending and unique; undefined for any NUMA node. */
  readonly numaNodes: readonly number[] | undefined;
  /**
   * Whether the hint uses the minimum number of NUMA nodes that the request would need on an empty
   * machine.
   */
  readonly preferred: boolean;
}

/**
 * The possible hints by resource name. Without the map, or without hints for a resource, any NUMA
 * node is possible; an empty list means that the request cannot be satisfied.
 */
export type TopologyHints = ReadonlyMap<string, readonly TopologyHint[] | undefined>;

export interface AllocationTerms {
  /**
   * The merged hint of all resources; it allows any NUMA node if no topology policy is configured.
   */
  readonly affinity: TopologyHint;
  readonly signal: AbortSignal;
}

/**
 * Allocates a topology-aware resource: CPUs, memory or devices. The hints and the allocation of a
 * pod are not interleaved with those of other pods. A pod keeps its resources until it is inactive,
 * which each provider detects itself.
 */
export interface HintProvider {
  /**
   * Whether the pod requests the resource of this provider; if undefined, every pod counts as
   * requesting it.
   */
  isRequestedBy?(pod: Pod): boolean;
  /**
   * Waits for a limited time until expected device plugins have registered and terminating pods
   * have released their resources.
   */
  ready?(pod: Pod, signal: AbortSignal): Promise<void>;
  /**
   * Returns the topology hints of a container. Must be fast and without side effects. A container
   * with an allocation gets exactly the hint of that allocation.
   */
  getTopologyHints(pod: Pod, container: Container): TopologyHints | undefined;
  /** Returns the topology hints for all containers of the pod together. */
  getPodTopologyHints(pod: Pod): TopologyHints | undefined;
  /**
   * Allocates the resources of the container and persists them before it resolves. Idempotent.
   * Called for init containers first, in order. Returns a rejection with the provider's own reason;
   * any other failure is thrown and becomes an unexpected admission error.
   */
  allocate(pod: Pod, container: Container, terms: AllocationTerms): Promise<Rejection | undefined>;
}

/** A hint that allows any NUMA node. */
export const anywhere: TopologyHint = { numaNodes: undefined, preferred: true };

/** The hint that is used if no hints were requested. */
export const unaligned: TopologyHint = { numaNodes: undefined, preferred: false };

/**
 * Returns all sets of NUMA nodes, smallest first. Their number doubles with each node, so this is
 * used only for machines with few nodes.
 */
export function* numaChoices(numaNodes: readonly number[]): Generator<readonly number[]> {
  for (let size = 1; size <= numaNodes.length; size++) yield* choices(numaNodes, size);
}

/** Returns all sets of the given size, in the order of the list. */
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
