import type { Pod, PodJournal, PodUid } from '../../pods/index.ts';
import {
  cgroupName,
  cgroupPath,
  type EvictionKill,
  EvictionManager,
  type EvictionStats,
  evictedStatus,
  evictionMetrics,
  type PressureCondition,
  parseCgroupPath,
} from '../../resources/index.ts';
import { killPodNow, type PodWorkers } from '../../workers/index.ts';
import type { KubeletDeps } from '../kubelet-deps.ts';
import type { NodeJournal } from '../node-journal.ts';
import type { KubeletSettings } from '../settings.ts';
import type { VolumePlace } from '../stats/index.ts';

/** What the eviction manager needs of the kubelet it belongs to. */
export interface EvictionParts {
  readonly journal: PodJournal;
  readonly node: NodeJournal;
  readonly workers: () => PodWorkers;
  readonly activePods: () => readonly Pod[];
  readonly cgroupOf: (pod: Pod) => string;
  readonly placesOf: (pod: Pod) => readonly VolumePlace[];
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
  const stats = statsOf(settings, deps, parts);
  if (settings.eviction === undefined || stats === undefined) return undefined;
  const { clock, logger, metrics } = deps;
  const { journal, node, workers, activePods, reclaim, collectGarbage, conditionsChanged } = parts;
  return new EvictionManager({
    clock,
    logger,
    settings: settings.eviction,
    stats,
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
  settings: KubeletSettings,
  deps: KubeletDeps,
  parts: EvictionParts,
): EvictionStats | undefined {
  const { rootDir, podLogsDir, cgroupRoot, cgroupDriver, cgroupsPerQos } = settings;
  const { clock, cri, machine } = deps;
  const { volumeFiles } = machine;
  const pods = cgroupName(parseCgroupPath(cgroupRoot, cgroupDriver), 'kubepods');
  return machine.evictionStats?.({
    clock,
    cri,
    host: machine.cgroups,
    rootDir,
    podLogsDir,
    podsCgroup: cgroupsPerQos ? cgroupPath(pods, cgroupDriver) : undefined,
    cgroupOf: parts.cgroupOf,
    placesOf: parts.placesOf,
    async usageIn(directory, signal) {
      if (volumeFiles === undefined) throw new Error('The machine gives no access to its files');
      const { usedBytes, inodesUsed } = await volumeFiles.usageIn(directory, signal);
      return { bytes: usedBytes, inodes: inodesUsed };
    },
  });
}
