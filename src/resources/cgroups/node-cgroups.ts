import type { NodeEvent, NodeJournal } from '../../journal/index.ts';
import {
  type CgroupHost,
  type Clock,
  describeError,
  detectCgroupLayout,
  type Logger,
  type MetricRegistry,
  untilAborted,
} from '../../lib/index.ts';
import type { Pod, PodJournal, QosClass } from '../../pods/index.ts';
import type { LinuxNode, PodLimitsAccess } from '../../runtime/index.ts';
import type { ExclusiveResourceSettings } from '../exclusive/create-resource-allocator.ts';
import type { SliceManager } from './cgroup-manager.ts';
import { CgroupManager, cgroupMetrics } from './cgroup-manager.ts';
import { parseCgroupPath } from './cgroup-name.ts';
import { type KubepodsWeight, kubepodsValues, type NodeAmount } from './pod-cgroup-values.ts';
import { noPodCgroups, type PodCgroups, PodContainerManager } from './pod-container-manager.ts';
import { QosContainerManager } from './qos-container-manager.ts';
import { enforceReservedCgroups, type ReservedCgroup } from './reserved-cgroups.ts';
import { type ProcessFacts, SystemCgroups } from './system-cgroups.ts';

/** The settings of the kubelet that concern cgroups. */
export interface NodeCgroupSettings {
  readonly cgroupRoot: string;
  readonly cgroupDriver: 'cgroupfs' | 'systemd';
  readonly cgroupsPerQos: boolean;
  readonly node: Pick<LinuxNode, 'hugePageSizes' | 'cpuQuota' | 'cpuPeriodUs'>;
  readonly podPidsLimit: number;
  readonly capacity: NodeAmount;
  readonly reserved: NodeAmount;
  readonly kubepodsWeight?: KubepodsWeight | undefined;
  readonly reservedCgroups?: readonly ReservedCgroup[] | undefined;
  readonly systemCgroups?:
    | { readonly kubelet?: string | undefined; readonly misc?: string | undefined }
    | undefined;
  readonly exclusiveResources?: ExclusiveResourceSettings | undefined;
}

export interface NodeCgroupDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly journal: PodJournal;
  readonly node: Pick<NodeJournal, 'event'>;
  /**
   * Reads the PIDs, cgroups and namespaces of the processes on the host; if undefined, no process
   * is moved to the system cgroups.
   */
  readonly processes?: ProcessFacts | undefined;
  readonly activePods: (quality: QosClass) => readonly Pod[];
  readonly hasExclusiveCpus?: (pod: Pod) => boolean;
}

/**
 * Creates the parent cgroups of the pods at startup and restores them periodically. Dispose last,
 * after all users of cgroups.
 */
export interface CgroupUpkeep extends Disposable {
  start(signal: AbortSignal): Promise<void>;
  /** Resolves without an error when the signal is aborted. */
  run(signal: AbortSignal): Promise<void>;
}

type UpkeepPart = Partial<Pick<CgroupUpkeep, 'start' | 'run'>>;

export interface NodeCgroups {
  readonly upkeep: CgroupUpkeep;
  readonly pods: PodCgroups;
  /** Reads and sets the limits of pod cgroups; undefined if pod cgroups are disabled. */
  readonly limits: PodLimitsAccess | undefined;
}

/** What the cgroup manager needs from the machine. */
interface CgroupMachine {
  readonly cgroups: CgroupHost;
  readonly openSlices?: (() => Promise<SliceManager>) | undefined;
}

/**
 * Creates the cgroup manager. Throws CGROUPS_UNUSABLE if the machine lacks a cgroup feature that
 * pods need.
 */
export async function openCgroups(
  { cgroupDriver: driver }: NodeCgroupSettings,
  {
    clock,
    metrics,
    machine,
  }: { readonly clock: Clock; readonly metrics: MetricRegistry; readonly machine: CgroupMachine },
): Promise<CgroupManager> {
  const { cgroups: host, openSlices } = machine;
  const layout = await detectCgroupLayout(host);
  const slices = driver === 'systemd' ? await openSlices?.() : undefined;
  return new CgroupManager({ host, layout, driver, slices, clock, observe: cgroupMetrics(metrics) });
}

export function nodeCgroups(
  settings: NodeCgroupSettings,
  cgroups: CgroupManager,
  deps: NodeCgroupDeps,
): NodeCgroups {
  const system = systemCgroups(settings, cgroups, deps);
  if (!settings.cgroupsPerQos)
    return { upkeep: together([system], cgroups), pods: noPodCgroups, limits: undefined };
  const { node, podPidsLimit } = settings;
  const { hugePageSizes, cpuQuota, cpuPeriodUs } = node;
  const { logger, journal } = deps;
  const qos = qosCgroups(settings, cgroups, deps);
  const pods = new PodContainerManager({
    cgroups,
    qos,
    settings: {
      cpuCfsQuota: cpuQuota === 'enforced',
      cpuCfsQuotaPeriodUs: Number(cpuPeriodUs),
      podPidsLimit,
      hugePageSizes,
    },
    hasExclusiveCpus: deps.hasExclusiveCpus,
    journal,
    logger,
  });
  const upkeep = together([qos, reservedUpkeep(settings, cgroups, deps), system], cgroups);
  return { upkeep, pods, limits: pods };
}

function qosCgroups(
  settings: NodeCgroupSettings,
  cgroups: CgroupManager,
  { clock, logger, activePods, node }: NodeCgroupDeps,
): QosContainerManager {
  const { cgroupRoot, cgroupDriver, capacity, reserved, kubepodsWeight } = settings;
  return new QosContainerManager({
    cgroups,
    cgroupRoot: parseCgroupPath(cgroupRoot, cgroupDriver),
    kubepods: kubepodsValues(capacity, reserved, kubepodsWeight),
    enforcement: {
      enforced: () =>
        node.event({
          type: 'Normal',
          reason: 'NodeAllocatableEnforced',
          message: 'Updated Node Allocatable limit across pods',
        }),
      failed: (cgroup, error) =>
        node.event({
          type: 'Warning',
          reason: 'FailedNodeAllocatableEnforcement',
          message: `Failed to update Node Allocatable Limits "${cgroup}": ${describeError(error)}`,
        }),
    },
    // With a static CPU policy, kubepods gets no cpuset, because the policy sets the cpusets of the
    // containers.
    cpuset: cgroupDriver === 'systemd' && settings.exclusiveResources?.cpu === undefined ? 'all' : 'unset',
    hugePageSizes: settings.node.hugePageSizes,
    activePods,
    clock,
    logger,
  });
}

function reservedUpkeep(
  { reservedCgroups = [] }: NodeCgroupSettings,
  cgroups: CgroupManager,
  { node }: NodeCgroupDeps,
): UpkeepPart {
  const tell = (event: NodeEvent) => node.event(event);
  return { start: (signal) => enforceReservedCgroups(cgroups, reservedCgroups, tell, signal) };
}

function systemCgroups(
  { systemCgroups: places }: NodeCgroupSettings,
  cgroups: CgroupManager,
  { clock, logger, processes }: NodeCgroupDeps,
): UpkeepPart {
  const { kubelet: own, misc: system } = places ?? {};
  if ((own ?? system) === undefined || processes === undefined) return {};
  // The configured cgroups are plain paths, which need not be systemd slices.
  const mover = new SystemCgroups({ own, system, cgroups: cgroups.plain(), processes, clock, logger });
  return { run: (signal) => mover.run(signal) };
}

/**
 * Combines the parts that maintain cgroups: `start` resolves when the cgroups exist; `run` resolves
 * only when it is aborted, because the node treats a loop that returns as failed.
 */
function together(parts: readonly UpkeepPart[], cgroups: CgroupManager): CgroupUpkeep {
  return {
    [Symbol.dispose]: () => cgroups[Symbol.dispose](),
    async start(signal) {
      for (const part of parts) await part.start?.(signal);
    },
    async run(signal) {
      await Promise.all([untilAborted(signal).catch(() => {}), ...parts.map((part) => part.run?.(signal))]);
    },
  };
}
