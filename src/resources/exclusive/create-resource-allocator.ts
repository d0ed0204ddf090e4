import {
  type Clock,
  KubelingError,
  type Logger,
  type MetricRegistry,
  tryParseBool,
} from '../../lib/index.ts';
import { CpuManager, type CpuManagerDeps } from '../cpu/cpu-manager.ts';
import { parseCpuSet } from '../cpu/cpu-set.ts';
import { cpuStateFile } from '../cpu/cpu-state.ts';
import { CpuTopology } from '../cpu/cpu-topology.ts';
import { StaticCpuPolicy } from '../cpu/static-cpu-policy.ts';
import type { MachineFiles } from '../machine/machine-facts.ts';
import { memoryStateFile } from '../memory/memory-checkpoint.ts';
import { hugePageResourceOf, MemoryManager, validateReservedMemory } from '../memory/memory-manager.ts';
import { initialMachineMemory, StaticMemoryPolicy } from '../memory/static-memory-policy.ts';
import type { HintProvider } from '../topology/hint-provider.ts';
import { type MachineTopology, readMachineTopology } from '../topology/machine-topology.ts';
import type { TopologyPolicy } from '../topology/merge-hints.ts';
import { mergeHints } from '../topology/merge-hints.ts';
import { type Alignment, TopologyManager } from '../topology/topology-manager.ts';
import {
  type AlignmentCounter,
  alignmentMetrics,
  cpuMetrics,
  memoryMetrics,
  topologyMetrics,
} from './metrics.ts';
import {
  type ExclusiveResources,
  ResourceAllocator,
  type ResourceAllocatorDeps,
} from './resource-allocator.ts';
import type { StateFile } from './state-checkpoint.ts';

export interface CreateResourceAllocatorDeps
  extends Pick<CpuManagerDeps, 'activePods' | 'mayRun' | 'runningContainers' | 'fromRuntime' | 'update'>,
    Pick<ResourceAllocatorDeps, 'isAnyEnding' | 'resetPolicies'> {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: MetricRegistry;
  /** The files from which the machine topology is read. */
  readonly files: MachineFiles;
  /** Returns the checkpoint file of that name in the root directory. */
  readonly stateFile: (name: string) => StateFile;
  /**
   * The hint providers besides CPU and memory, such as the device manager; they are called first.
   */
  readonly providers?: (() => readonly HintProvider[]) | undefined;
}

/**
 * Creates the resource allocator. Throws ALLOCATION_CONFIG or MACHINE_TOPOLOGY if the machine does
 * not support the configuration.
 */
export async function createResourceAllocator(
  settings: ExclusiveResourceSettings,
  parts: CreateResourceAllocatorDeps,
): Promise<ExclusiveResources> {
  const { clock, logger, metrics } = parts;
  const machine = await readMachineTopology(parts.files);
  const count = alignmentMetrics(metrics);
  const cpu = settings.cpu && createCpuManager(settings.cpu, machine, parts, count);
  const memory = settings.memory && createMemoryManager(settings.memory, machine, parts);
  const own = [cpu, memory].filter((provider) => provider !== undefined);
  const providers = () => [...(parts.providers?.() ?? []), ...own];
  const alignment = settings.topology && alignmentOf(settings.topology, machine);
  const observer = topologyMetrics(metrics, count);
  const topology = new TopologyManager({ clock, logger, providers, alignment, observer });
  const quota = settings.cpu?.quota ?? 'lifted';
  const numaNodes = machine.numaNodes.map(({ id }) => id);
  return new ResourceAllocator({ ...parts, topology, numaNodes, providers, cpu, memory, quota });
}

function createCpuManager(
  { reservedCount, reservedCpus, options, reconcileMs }: NonNullable<ExclusiveResourceSettings['cpu']>,
  machine: MachineTopology,
  parts: CreateResourceAllocatorDeps,
  count: AlignmentCounter,
): CpuManager {
  const groups = new CpuTopology(machine);
  const isOn = switches(options);
  const fullPcpusOnly = isOn('full-pcpus-only');
  const policy = new StaticCpuPolicy({
    groups,
    reserved: { count: reservedCount, cpus: reservedCpus === '' ? undefined : parseCpuSet(reservedCpus) },
    options: {
      fullPcpusOnly,
      strictCpuReservation: isOn('strict-cpu-reservation'),
      preferAlignByUncoreCache: isOn('prefer-align-cpus-by-uncorecache'),
      distributeAcrossNuma: isOn('distribute-cpus-across-numa'),
      alignBySocket: isOn('align-by-socket'),
      distributeAcrossCores: isOn('distribute-cpus-across-cores'),
    },
  });
  const observer = cpuMetrics(parts.metrics, groups, fullPcpusOnly ? 'whole-only' : 'any', count);
  return new CpuManager({ ...parts, policy, reconcileMs, file: parts.stateFile(cpuStateFile), observer });
}

function createMemoryManager(
  settings: NonNullable<ExclusiveResourceSettings['memory']>,
  machine: MachineTopology,
  parts: CreateResourceAllocatorDeps,
): MemoryManager {
  const reserved = validateReservedMemory(settings, machine.numaNodes);
  const nodes = machine.numaNodes.map(({ id, memoryBytes, hugePages }) => ({
    id,
    memoryBytes,
    hugePages: hugePages.map(({ pageBytes, count }) => ({
      type: hugePageResourceOf(pageBytes),
      bytes: pageBytes * count,
    })),
  }));
  const reservedOn = (id: number, type: string) => Number(reserved.get(id)?.get(type) ?? 0n);
  const policy = new StaticMemoryPolicy(initialMachineMemory(nodes, reservedOn));
  const file = parts.stateFile(memoryStateFile);
  return new MemoryManager({ ...parts, policy, file, observer: memoryMetrics(parts.metrics) });
}

function switches(options: Readonly<Record<string, string>>): (name: string) => boolean {
  return (name) => Object.hasOwn(options, name) && tryParseBool(options[name] ?? '') === true;
}

/**
 * The default maximum number of NUMA nodes for alignment: the number of combinations grows
 * exponentially.
 */
const mostNumaNodes = 8;

function alignmentOf(
  { policy, scope, options }: NonNullable<ExclusiveResourceSettings['topology']>,
  { numaNodes }: MachineTopology,
): Alignment {
  const most = Number(options['max-allowable-numa-nodes'] ?? mostNumaNodes);
  if (numaNodes.length > most) {
    const message = `Cannot align resources on a machine of ${numaNodes.length} NUMA nodes: unsupported on machines with more than ${most} NUMA Nodes`;
    throw new KubelingError('ALLOCATION_CONFIG', message);
  }
  const isClosest = switches(options)('prefer-closest-numa-nodes');
  if (isClosest && numaNodes.some(({ distances }) => distances.size === 0)) {
    const message = 'Cannot prefer the closest NUMA nodes as the kernel does not publish their distances';
    throw new KubelingError('ALLOCATION_CONFIG', message);
  }
  const distances = new Map(numaNodes.map((node) => [node.id, node.distances]));
  const rules = {
    policy,
    numaNodes: numaNodes.map(({ id }) => id),
    distance: isClosest
      ? (from: number, to: number) => distances.get(from)?.get(to) ?? Number.POSITIVE_INFINITY
      : undefined,
  };
  return {
    scope,
    merge: (provided) => mergeHints(provided, rules),
    isGuaranteed: policy === 'single-numa-node',
  };
}

/** The configuration of the CPU, memory and topology managers. */
export interface ExclusiveResourceSettings {
  /** The static CPU policy; no exclusive CPUs if undefined. */
  readonly cpu?:
    | {
        /** The number of CPUs reserved for the system. */
        readonly reservedCount: number;
        /** The reserved CPUs, such as 0-1,4; if empty, CPUs of the first cores are reserved. */
        readonly reservedCpus: string;
        /** The cpuManagerPolicyOptions as configured, not parsed yet. */
        readonly options: Readonly<Record<string, string>>;
        readonly reconcileMs: number;
        /**
         * Whether containers with exclusive CPUs keep their CPU quota; by default they have none.
         */
        readonly quota?: 'kept' | 'lifted' | undefined;
      }
    | undefined;
  /**
   * The static policy of the memory manager; if undefined, containers get memory of any NUMA node.
   */
  readonly memory?:
    | {
        /** The memory reserved on each NUMA node, in bytes by resource name. */
        readonly reserved: readonly {
          readonly numaNode: number;
          readonly limits: ReadonlyMap<string, bigint>;
        }[];
        /** The required sum of the reserved memory of all NUMA nodes, by resource name. */
        readonly required: ReadonlyMap<string, bigint>;
      }
    | undefined;
  /** The topology manager policy; without one, resources are not aligned to NUMA nodes. */
  readonly topology?:
    | {
        readonly policy: TopologyPolicy;
        readonly scope: 'container' | 'pod';
        readonly options: Readonly<Record<string, string>>;
      }
    | undefined;
}
