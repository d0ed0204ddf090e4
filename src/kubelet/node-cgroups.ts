import {
  type CgroupHost,
  type Clock,
  detectCgroupLayout,
  type Logger,
  type MetricRegistry,
  untilAborted,
} from '../lib/index.ts';
import type { Pod, PodJournal, QosClass } from '../pods/index.ts';
import {
  CgroupManager,
  cgroupMetrics,
  kubepodsValues,
  noPodCgroups,
  type PodCgroups,
  PodContainerManager,
  parseCgroupPath,
  QosContainerManager,
} from '../resources/index.ts';
import type { PodLimitsAccess } from '../runtime/index.ts';
import type { KubeletSettings } from './settings.ts';

export interface NodeCgroupDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly journal: PodJournal;
  readonly activePods: (quality: QosClass) => readonly Pod[];
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
  if (!settings.cgroupsPerQos) return { upkeep: noUpkeep, pods: noPodCgroups, limits: undefined };
  const { node, podPidsLimit, cgroupRoot, cgroupDriver, capacity, reserved } = settings;
  const { hugePageSizes, cpuQuota, cpuPeriodUs } = node;
  const { clock, logger, journal, activePods } = deps;
  const qos = new QosContainerManager({
    cgroups,
    cgroupRoot: parseCgroupPath(cgroupRoot, cgroupDriver),
    kubepods: kubepodsValues(capacity, reserved),
    hugePageSizes,
    activePods,
    clock,
    logger,
  });
  const pods = new PodContainerManager({
    cgroups,
    qos,
    settings: {
      cpuCfsQuota: cpuQuota === 'enforced',
      cpuCfsQuotaPeriodUs: Number(cpuPeriodUs),
      podPidsLimit,
      hugePageSizes,
    },
    journal,
    logger,
  });
  return { upkeep: qos, pods, limits: pods };
}

/** A loop that ended by itself would count as one that is down. */
const noUpkeep: CgroupUpkeep = {
  start: async () => {},
  run: (signal) => untilAborted(signal).catch(() => {}),
};
