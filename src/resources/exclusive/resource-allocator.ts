import type { Clock, Logger } from '../../lib/index.ts';
import { describePod, type Pod, type PodUid } from '../../pods/index.ts';
import type { Allotter, Refusal } from '../admission/index.ts';
import type { CpuManager } from '../cpu/cpu-manager.ts';
import { sortedCpus } from '../cpu/cpu-set.ts';
import type { MemoryManager } from '../memory/memory-manager.ts';
import type { MemoryBlock } from '../memory/memory-state.ts';
import type { HintProvider } from '../topology/hint-provider.ts';
import type { TopologyManager } from '../topology/topology-manager.ts';

/** What a container is made with. */
export interface ContainerPlacement {
  readonly exclusiveCpus?: boolean;
  readonly cpusetCpus?: string;
  readonly cpusetMems?: string;
}

/** Of each kind there is a manager of; nothing of the others. */
export interface AllocatedResources {
  /** Processors that are one container's alone. */
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

/** Who gives pods their places on the machine, as the kubelet sees it. */
export interface ExclusiveResources extends Allotter {
  /** Of the machine, ascending; undefined where nobody has looked. */
  readonly numaNodes: readonly number[] | undefined;
  /** Goes on from what an earlier kubelet has noted; before anything else is asked. */
  restore(signal: AbortSignal): Promise<void>;
  /** One that lives here since before this kubelet has its share, or gets one where that can be; it is not refused. */
  adopt(pod: Pod): void;
  /** For a container that is about to be made. */
  placementFor(pod: Pod, container: string): ContainerPlacement;
  hasExclusiveCpus(pod: Pod): boolean;
  /** What was given to whom, and all that can be, for whoever asks. */
  allocated(): AllocatedResources;
  /** Loops to be run beside, by name. */
  loops(): Readonly<Record<string, { run(signal: AbortSignal): Promise<void> }>>;
}

export interface ResourceAllocatorDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly topology: TopologyManager;
  readonly numaNodes: readonly number[];
  readonly providers: () => readonly HintProvider[];
  readonly cpu: CpuManager | undefined;
  /** Of containers with processors of their own. */
  readonly quota: 'kept' | 'lifted';
  readonly memory: MemoryManager | undefined;
  /** Undoes first what another policy has done. */
  readonly resetPolicies?: ((signal: AbortSignal) => Promise<void>) | undefined;
  /** Whether any other pod that has something is about to end. */
  readonly isAnyEnding: (besides: Pod) => boolean;
}

/** How long a pod waits for what others that are ending will give back. */
const terminationWaitMs = 30_000;
const retryMs = 1_000;

/** What a pod got stays its own until it is inactive. */
export class ResourceAllocator implements ExclusiveResources {
  readonly #deps: ResourceAllocatorDeps;
  /** Whose adoption is under way. */
  readonly #adopting = new Set<PodUid>();
  /** Ends with the kubelet. */
  #life: AbortSignal | undefined;

  constructor(deps: ResourceAllocatorDeps) {
    this.#deps = deps;
  }

  get numaNodes(): readonly number[] {
    return this.#deps.numaNodes;
  }

  async restore(signal: AbortSignal): Promise<void> {
    this.#life = signal;
    await this.#deps.resetPolicies?.(signal);
    await this.#deps.cpu?.restore(signal);
    await this.#deps.memory?.restore(signal);
  }

  isRequestedBy(pod: Pod): boolean {
    return this.#deps.providers().some((provider) => provider.isRequestedBy?.(pod) ?? true);
  }

  async allot(pod: Pod, signal: AbortSignal): Promise<Refusal | undefined> {
    const { clock, topology, isAnyEnding } = this.#deps;
    const untilMs = clock.monotonicMs() + terminationWaitMs;
    for (;;) {
      const refusal = await topology.admit(pod, signal);
      if (refusal === undefined || !isAnyEnding(pod) || clock.monotonicMs() >= untilMs) return refusal;
      await clock.sleep(retryMs, signal);
    }
  }

  adopt(pod: Pod): void {
    const { uid } = pod.metadata;
    if (this.#life === undefined || this.#adopting.has(uid) || !this.isRequestedBy(pod)) return;
    this.#adopting.add(uid);
    void this.#adopt(pod, this.#life).finally(() => this.#adopting.delete(uid));
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

  /** Whether its processors are all that bounds the container. */
  #isUnbound(uid: PodUid, container: string): boolean {
    const { cpu, quota } = this.#deps;
    return quota === 'lifted' && cpu !== undefined && cpu.exclusiveCpus(uid, container).size > 0;
  }

  async #adopt(pod: Pod, signal: AbortSignal): Promise<void> {
    const { topology, logger } = this.#deps;
    try {
      const refusal = await topology.admit(pod, signal);
      if (refusal === undefined) return;
      const fields = { pod: describePod(pod), why: refusal.message };
      logger.warn('A pod that runs cannot have what it asks for to itself: it goes on as it is', fields);
    } catch (error) {
      if (signal.aborted) return;
      logger.error('Cannot give a pod that runs what it asks for to itself', error, {
        pod: describePod(pod),
      });
    }
  }
}

function asAllocated({ type, size, numaAffinity }: MemoryBlock): AllocatedMemory {
  return { type, bytes: BigInt(size), numaNodes: numaAffinity };
}
