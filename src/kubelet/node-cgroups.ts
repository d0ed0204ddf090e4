import {
  type CgroupHost,
  type Clock,
  describeError,
  detectCgroupLayout,
  type Logger,
  type MetricRegistry,
  untilAborted,
} from '../lib/index.ts';
import type { Pod, PodJournal, QosClass } from '../pods/index.ts';
import {
  CgroupManager,
  cgroupMetrics,
  enforceReserved,
  kubepodsValues,
  noPodCgroups,
  type PodCgroups,
  PodContainerManager,
  type ProcessFacts,
  parseCgroupPath,
  QosContainerManager,
  SystemCgroups,
} from '../resources/index.ts';
import type { PodLimitsAccess } from '../runtime/index.ts';
import type { NodeJournal } from './node-journal.ts';
import type { KubeletSettings } from './settings.ts';

export interface NodeCgroupDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly journal: PodJournal;
  readonly node: Pick<NodeJournal, 'event'>;
  /** None are moved unless given. */
  readonly processes?: ProcessFacts | undefined;
  readonly activePods: (quality: QosClass) => readonly Pod[];
  readonly hasExclusiveCpus?: (pod: Pod) => boolean;
}

/** The cgroups above those of pods: made at the start and kept up from then on. */
export interface CgroupUpkeep {
  start(signal: AbortSignal): Promise<void>;
  /** Ends with the signal, without an error. */
  run(signal: AbortSignal): Promise<void>;
}

export interface NodeCgroups {
  readonly upkeep: CgroupUpkeep;
  readonly pods: PodCgroups;
  /** Undefined where pods have no cgroups of their own. */
  readonly limits: PodLimitsAccess | undefined;
}

/** Throws CGROUPS_UNUSABLE when the machine lacks what pods need. */
export async function openCgroups(
  { cgroupDriver }: KubeletSettings,
  {
    clock,
    metrics,
    host,
  }: { readonly clock: Clock; readonly metrics: MetricRegistry; readonly host: CgroupHost },
): Promise<CgroupManager> {
  const layout = await detectCgroupLayout(host);
  return new CgroupManager({ host, layout, driver: cgroupDriver, clock, observe: cgroupMetrics(metrics) });
}

export function nodeCgroups(
  settings: KubeletSettings,
  cgroups: CgroupManager,
  deps: NodeCgroupDeps,
): NodeCgroups {
  const system = systemCgroups(settings, cgroups, deps);
  if (!settings.cgroupsPerQos) return { upkeep: together([system]), pods: noPodCgroups, limits: undefined };
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
  return { upkeep: together([qos, reservedUpkeep(settings, cgroups, deps), system]), pods, limits: pods };
}

function qosCgroups(
  settings: KubeletSettings,
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
    hugePageSizes: settings.node.hugePageSizes,
    activePods,
    clock,
    logger,
  });
}

function reservedUpkeep(
  { reservedCgroups = [] }: KubeletSettings,
  cgroups: CgroupManager,
  { node }: NodeCgroupDeps,
): Partial<CgroupUpkeep> {
  return { start: () => enforceReserved(cgroups, reservedCgroups, (event) => node.event(event)) };
}

function systemCgroups(
  { systemCgroups: places }: KubeletSettings,
  cgroups: CgroupManager,
  { clock, logger, processes }: NodeCgroupDeps,
): Partial<CgroupUpkeep> {
  const { kubelet: own, misc: system } = places ?? {};
  if ((own ?? system) === undefined || processes === undefined) return {};
  const mover = new SystemCgroups({ own, system, cgroups, processes, clock, logger });
  return { run: (signal) => mover.run(signal) };
}

/** One after the other at the start. Runs on where nobody does: a loop that ended by itself would count as one that is down. */
function together(parts: readonly Partial<CgroupUpkeep>[]): CgroupUpkeep {
  return {
    async start(signal) {
      for (const part of parts) await part.start?.(signal);
    },
    async run(signal) {
      await Promise.all([untilAborted(signal).catch(() => {}), ...parts.map((part) => part.run?.(signal))]);
    },
  };
}
