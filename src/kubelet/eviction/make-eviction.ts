import type { Pod, PodJournal, PodUid } from '../../pods/index.ts';
import {
  type EvictionKill,
  EvictionManager,
  type EvictionStats,
  evictedStatus,
  evictionMetrics,
  kubepodsPath,
  type PressureCondition,
} from '../../resources/index.ts';
import { killPodNow, type PodWorkers } from '../../workers/index.ts';
import type { KubeletDeps } from '../kubelet-deps.ts';
import type { NodeJournal } from '../node-journal.ts';
import type { KubeletSettings } from '../settings.ts';
import type { Statistics } from '../statistics.ts';
import { KernelMemoryAlarm } from './kernel-memory-alarm.ts';
import { ProvidedStats } from './provided-stats.ts';

/** What the eviction manager needs of the kubelet it belongs to. */
export interface EvictionParts {
  readonly journal: PodJournal;
  readonly node: NodeJournal;
  readonly workers: () => PodWorkers;
  /** Those that use, or will use, anything of the node. */
  readonly activePods: () => readonly Pod[];
  readonly statistics: Pick<Statistics, 'provider'>;
  readonly reclaim: {
    deleteAllUnusedContainers(signal: AbortSignal): Promise<void>;
    deleteUnusedImages(signal: AbortSignal): Promise<void>;
  };
  readonly collectGarbage: (signal: AbortSignal) => Promise<void>;
  readonly conditionsChanged: (conditions: readonly PressureCondition[]) => void;
}

/** Undefined where nobody is ever evicted: as settings say, or because the machine does not tell what is left of it. */
export function makeEviction(
  settings: KubeletSettings,
  deps: KubeletDeps,
  parts: EvictionParts,
): EvictionManager | undefined {
  const stats = statsOf(deps, parts);
  if (settings.eviction === undefined || stats === undefined) return undefined;
  const { clock, logger, metrics } = deps;
  const { journal, node, workers, activePods, reclaim, collectGarbage, conditionsChanged } = parts;
  return new EvictionManager({
    clock,
    logger,
    settings: settings.eviction,
    stats,
    memoryAlarm: memoryAlarmOf(settings, deps),
    activePods,
    kill: (pod, kill, signal) => evict({ ...deps, journal, workers: workers() }, pod, kill, signal),
    isCleanedUp: (uid: PodUid) => workers().queries.shouldPodBeFinished(uid),
    reclaim,
    collectGarbage,
    podEvent: (pod, event) => journal.event(pod, event),
    nodeEvent: (event) => node.event(event),
    observer: evictionMetrics(metrics),
    conditionsChanged,
  });
}

/** Undefined unless somebody has asked for it, on a machine that has it. */
function memoryAlarmOf(
  { eviction, cgroupRoot, cgroupDriver }: KubeletSettings,
  { logger, machine: { cgroups, watchMemory } }: KubeletDeps,
): KernelMemoryAlarm | undefined {
  if (eviction?.memoryNotification !== 'kernel' || watchMemory === undefined) return undefined;
  const podsCgroup = kubepodsPath(cgroupRoot, cgroupDriver);
  return new KernelMemoryAlarm({ logger, cgroups, watch: watchMemory, podsCgroup });
}

async function evict(
  deps: Parameters<typeof killPodNow>[0],
  pod: Pod,
  { graceSeconds, verdict }: EvictionKill,
  signal: AbortSignal,
): Promise<void> {
  const statusFn = (status: Pod['status']) => evictedStatus(status, verdict, pod);
  await killPodNow(deps, pod, { why: 'eviction', graceOverrideSeconds: graceSeconds, statusFn }, signal);
}

function statsOf(
  { clock, machine }: KubeletDeps,
  { statistics }: Pick<EvictionParts, 'statistics'>,
): EvictionStats | undefined {
  if (machine.evictionStats !== undefined) return machine.evictionStats;
  return machine.stats && new ProvidedStats({ clock, provider: () => statistics.provider() });
}
