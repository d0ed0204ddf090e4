import type { Clock, Logger } from '../../lib/index.ts';
import { describePod, type Pod, type PodUid } from '../../pods/index.ts';
import type { PodResourceAllocator, Rejection } from '../admission/index.ts';
import type { CpuManager } from '../cpu/cpu-manager.ts';
import { sortedCpus } from '../cpu/cpu-set.ts';
import type { MemoryManager } from '../memory/memory-manager.ts';
import type { MemoryBlock } from '../memory/memory-state.ts';
import type { HintProvider } from '../topology/hint-provider.ts';
import type { TopologyManager } from '../topology/topology-manager.ts';

/** The CPU and memory placement of a new container. */
export interface ContainerPlacement {
  readonly exclusiveCpus?: boolean;
  readonly cpusetCpus?: string;
  readonly cpusetMems?: string;
}

/**
 * The allocated and allocatable resources by resource manager; undefined for a disabled manager.
 */
export interface AllocatedResources {
  /** The exclusive CPUs of each container. */
  readonly cpus?: ResourceAllocations<readonly number[]> | undefined;
  readonly memory?: ResourceAllocations<readonly AllocatedMemory[]> | undefined;
}

export interface AllocatedMemory {
  readonly type: string;
  readonly bytes: bigint;
  readonly numaNodes: readonly number[];
}

export interface ResourceAllocations<Share> {
  of(uid: PodUid, container: string): Share;
  allocatable(): Share;
}

/** Allocates exclusive CPUs, memory and devices to pods. */
export interface ExclusiveResources extends PodResourceAllocator {
  /** The numbers of the NUMA nodes of the machine, ascending; undefined if unknown. */
  readonly numaNodes: readonly number[] | undefined;
  /** Restores the allocations of a previous kubelet. Call before any other method. */
  restore(signal: AbortSignal): Promise<void>;
  /**
   * Allocates the exclusive resources of a pod that a previous kubelet started. If the allocation
   * fails, the pod continues unchanged.
   */
  adopt(pod: Pod): void;
  /** Returns the CPU and memory placement of a container that is about to be created. */
  placementFor(pod: Pod, container: string): ContainerPlacement;
  hasExclusiveCpus(pod: Pod): boolean;
  /** Returns the allocated and the allocatable resources of all managers. */
  allocated(): AllocatedResources;
  /** Returns the background loops of the managers, by name. */
  loops(): Readonly<Record<string, { run(signal: AbortSignal): Promise<void> }>>;
}

export interface ResourceAllocatorDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly topology: TopologyManager;
  readonly numaNodes: readonly number[];
  readonly providers: () => readonly HintProvider[];
  readonly cpu: CpuManager | undefined;
  /** Whether containers with exclusive CPUs have a CPU quota. */
  readonly quota: 'kept' | 'lifted';
  readonly memory: MemoryManager | undefined;
  /**
   * Reverts the effects of a previously configured policy; called before the previous allocations
   * are restored.
   */
  readonly resetPolicies?: ((signal: AbortSignal) => Promise<void>) | undefined;
  /** Whether a pod other than the given one is terminating and has exclusive resources. */
  readonly isAnyEnding: (besides: Pod) => boolean;
}

/** The longest time that a pod waits for the exclusive resources of terminating pods. */
const terminationWaitMs = 30_000;
const retryMs = 1_000;

/**
 * Allocates exclusive CPUs, memory and devices to pods; they stay allocated until the pod is
 * inactive.
 */
export class ResourceAllocator implements ExclusiveResources {
  readonly #deps: ResourceAllocatorDeps;
  /** The running pods whose resources are being allocated. */
  readonly #adopting = new Set<PodUid>();
  /** Aborted when the kubelet stops. */
  #stopped: AbortSignal | undefined;

  constructor(deps: ResourceAllocatorDeps) {
    this.#deps = deps;
  }

  get numaNodes(): readonly number[] {
    return this.#deps.numaNodes;
  }

  async restore(signal: AbortSignal): Promise<void> {
    this.#stopped = signal;
    await this.#deps.resetPolicies?.(signal);
    await this.#deps.cpu?.restore(signal);
    await this.#deps.memory?.restore(signal);
  }

  isRequestedBy(pod: Pod): boolean {
    return this.#deps.providers().some((provider) => provider.isRequestedBy?.(pod) ?? true);
  }

  async allocatePod(pod: Pod, signal: AbortSignal): Promise<Rejection | undefined> {
    const { clock, topology, isAnyEnding } = this.#deps;
    const untilMs = clock.monotonicMs() + terminationWaitMs;
    for (;;) {
      const rejection = await topology.admit(pod, signal);
      if (rejection === undefined || !isAnyEnding(pod) || clock.monotonicMs() >= untilMs) return rejection;
      await clock.sleep(retryMs, signal);
    }
  }

  adopt(pod: Pod): void {
    const { uid } = pod.metadata;
    if (this.#stopped === undefined || this.#adopting.has(uid) || !this.isRequestedBy(pod)) return;
    this.#adopting.add(uid);
    void this.#adopt(pod, this.#stopped).finally(() => this.#adopting.delete(uid));
  }

  placementFor(pod: Pod, container: string): ContainerPlacement {
    const { cpu, memory } = this.#deps;
    const { uid } = pod.metadata;
    return {
      ...(cpu && {
        exclusiveCpus: this.#isUnbound(uid, container),
        cpusetCpus: cpu.cpusetFor(uid, container),
      }),
      ...(memory && { cpusetMems: memory.memsFor(pod, container) }),
    };
  }

  hasExclusiveCpus({ metadata: { uid }, spec }: Pod): boolean {
    const containers = [...(spec.initContainers ?? []), ...spec.containers];
    return containers.some(({ name }) => this.#isUnbound(uid, name));
  }

  allocated(): AllocatedResources {
    const { cpu, memory } = this.#deps;
    return {
      cpus: cpu && {
        of: (uid, container) => sortedCpus(cpu.exclusiveCpus(uid, container)),
        allocatable: () => sortedCpus(cpu.allocatable),
      },
      memory: memory && {
        of: (uid, container) => memory.memoryOf(uid, container).map(asAllocated),
        allocatable: () => memory.allocatable.map(asAllocated),
      },
    };
  }

  loops(): ReturnType<ExclusiveResources['loops']> {
    const { cpu } = this.#deps;
    return cpu === undefined ? {} : { 'CPU manager': cpu };
  }

  /** Whether the container has no CPU quota because it is already limited to its exclusive CPUs. */
  #isUnbound(uid: PodUid, container: string): boolean {
    const { cpu, quota } = this.#deps;
    return quota === 'lifted' && cpu !== undefined && cpu.exclusiveCpus(uid, container).size > 0;
  }

  async #adopt(pod: Pod, signal: AbortSignal): Promise<void> {
    const { topology, logger } = this.#deps;
    try {
      const rejection = await topology.admit(pod, signal);
      if (rejection === undefined) return;
      const fields = { pod: describePod(pod), why: rejection.message };
      logger.warn('Failed to allocate exclusive resources for a running pod; it continues unchanged', fields);
    } catch (error) {
      if (signal.aborted) return;
      logger.error('Failed to allocate exclusive resources for a running pod', error, {
        pod: describePod(pod),
      });
    }
  }
}

function asAllocated({ type, size, numaAffinity }: MemoryBlock): AllocatedMemory {
  return { type, bytes: BigInt(size), numaNodes: numaAffinity };
}
