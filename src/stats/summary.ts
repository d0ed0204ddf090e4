import { apiTime, describeError, type FileSystemSpace, type Logger, MetricRegistry } from '../lib/index.ts';
import { CachedSample } from './cached-sample.ts';
import { type CadvisorSources, cadvisorMetrics, scrapeError } from './cadvisor-metrics.ts';
import type {
  ContainerUsage,
  FileUsage,
  NetworkUsage,
  NodeStats,
  PodUsage,
  StatsScope,
  Usage,
  VolumeUsage,
} from './node-stats.ts';
import { resourceMetrics } from './resource-metrics.ts';
import type { StatsProvider } from './stats-provider.ts';

/** Converts stats to the response of `/stats/summary`. */
export function summaryOf(stats: NodeStats, scope: StatsScope): object {
  return { node: nodeOf(stats, scope), pods: stats.pods.map((pod) => podOf(pod, stats, scope)) };
}

function nodeOf(stats: NodeStats, scope: StatsScope): object {
  const { nodeName, startTime, usage, system, network, disk, images, containers, processes } = stats;
  const plain = {
    nodeName,
    systemContainers: system.map((container) => containerOf(container, stats, scope)),
    startTime,
    ...usageOf(usage, scope),
  };
  if (scope === 'cpu-and-memory') return plain;
  return {
    ...plain,
    network: network && networkOf(network),
    fs: disk && diskOf(disk, disk),
    runtime: images && {
      imageFs: diskOf(images.disk ?? {}, images.own),
      containerFs: containers && diskOf(containers.disk ?? {}, containers.own),
    },
    rlimit: processes && {
      time: apiTime(processes.atMs),
      maxpid: processes.max,
      curproc: processes.current,
    },
  };
}

function podOf(pod: PodUsage, stats: NodeStats, scope: StatsScope): object {
  const { name, namespace, uid, startTime, usage, processes, network, containers, volumes } = pod;
  const plain = {
    podRef: { name, namespace, uid },
    startTime: startTime ?? stats.startTime,
    containers: containers.map((container) => containerOf(container, stats, scope)),
    ...usageOf(usage, scope),
  };
  if (scope === 'cpu-and-memory') return plain;
  return {
    ...plain,
    network: network && networkOf(network),
    volume: volumes?.map(volumeOf),
    'ephemeral-storage': stats.disk && diskOf(stats.disk, ephemeralOf(pod)),
    process_stats: processes === undefined ? undefined : { process_count: processes },
  };
}

/** Returns the ephemeral storage usage of a pod. */
export function ephemeralOf({ usage, containers, volumes = [], otherFiles = [] }: PodUsage): FileUsage {
  const scratch = volumes.filter(({ isScratch }) => isScratch);
  const written = [
    ...containers.flatMap(({ rootfs, logs }) => [rootfs, logs]),
    ...scratch,
    ...otherFiles,
  ].filter((part) => part !== undefined);
  const sum = (of: (part: Partial<FileUsage>) => number | undefined) =>
    written.reduce((total, part) => total + (of(part) ?? 0), 0);
  return {
    atMs: written.reduce((newest, { atMs }) => Math.max(newest, atMs), written.length === 0 ? usage.atMs : 0),
    usedBytes: sum(({ usedBytes }) => usedBytes),
    inodesUsed: sum(({ inodesUsed }) => inodesUsed),
  };
}

function containerOf(
  { name, startTime, usage, rootfs, logs }: ContainerUsage,
  { startTime: nodeStart, containers, disk }: NodeStats,
  scope: StatsScope,
): object {
  const plain = { name, startTime: startTime ?? nodeStart, ...usageOf(usage, scope) };
  if (scope === 'cpu-and-memory') return plain;
  const rootDisk = containers?.disk ?? disk;
  return {
    ...plain,
    rootfs: rootfs && rootDisk && diskOf(rootDisk, rootfs),
    logs: logs && disk && diskOf(disk, logs),
  };
}

function usageOf(usage: Usage, scope: StatsScope): object {
  const { atMs, cpuNanos, nanoCores, memory, swapBytes, swapAvailableBytes, pressure } = usage;
  const time = apiTime(atMs);
  const cpu = { time, usageNanoCores: nanoCores, usageCoreNanoSeconds: cpuNanos, psi: pressure?.cpu };
  return {
    cpu: cpuNanos === undefined ? undefined : cpu,
    memory: memory && { time, ...memory, psi: pressure?.memory },
    io: scope === 'all' && pressure?.io !== undefined ? { time, psi: pressure.io } : undefined,
    swap: swapBytes === undefined ? undefined : { time, swapAvailableBytes, swapUsageBytes: swapBytes },
  };
}

function networkOf({ atMs, main, interfaces }: NetworkUsage): object {
  const all = interfaces.map(({ name, rxBytes, rxErrors, txBytes, txErrors }) => ({
    name,
    rxBytes,
    rxErrors,
    txBytes,
    txErrors,
  }));
  const chosen = all.find(({ name }) => name === main) ?? all[0];
  return { time: apiTime(atMs), ...(chosen ?? { name: '' }), interfaces: all };
}

function volumeOf(volume: VolumeUsage): object {
  const { name, claim, health } = volume;
  const pvcRef = claim && { name: claim.name, namespace: claim.namespace };
  const volumeHealthStats = health && { abnormal: health === 'abnormal' };
  return { ...diskOf(volume, volume), name, pvcRef, volumeHealthStats };
}

function diskOf(
  disk: Partial<FileSystemSpace>,
  { atMs, usedBytes, inodesUsed }: Partial<FileUsage> & Pick<FileUsage, 'atMs'>,
): object {
  const { availableBytes, capacityBytes, inodesFree, inodes } = disk;
  return { time: apiTime(atMs), availableBytes, capacityBytes, usedBytes, inodesFree, inodes, inodesUsed };
}

/** Responses of the kubelet's stats endpoints. */
export interface StatsEndpoints {
  summary(scope: StatsScope, signal: AbortSignal): Promise<object>;
  /**
   * Returns the text of the resource metrics; it contains an error metric after a failed scrape.
   */
  resourceMetrics(signal: AbortSignal): Promise<string>;
  cadvisorMetrics(signal: AbortSignal): Promise<string>;
}

export interface StatsEndpointsDeps extends Omit<CadvisorSources, 'written'> {
  readonly logger: Logger;
  readonly provider: StatsProvider;
}

/** Time for which cgroup metrics are cached; concurrent scrapes share one read. */
const cgroupsForMs = 10_000;

export function createStatsEndpoints(deps: StatsEndpointsDeps): StatsEndpoints {
  const { clock, logger, provider } = deps;
  const onError = (error: unknown) => logger.error('Failed to collect a metric', error);
  const resources = new MetricRegistry({ onError });
  resources.collect(async (signal) => {
    const stats = await provider.stats('cpu-and-memory', signal).catch((error) => {
      signal.throwIfAborted();
      logger.warn('Failed to read resource usage', { problem: describeError(error) });
      return undefined;
    });
    return resourceMetrics(stats);
  });
  const cgroups = new MetricRegistry({ onError });
  const sources: CadvisorSources = { ...deps, written: (signal) => provider.written(signal) };
  cgroups.collect((signal) =>
    cadvisorMetrics(sources, signal).catch((error) => {
      signal.throwIfAborted();
      logger.warn('Failed to read cgroup usage', { problem: describeError(error) });
      return [scrapeError(1)];
    }),
  );
  const page = new CachedSample(clock, (signal) => cgroups.expose(signal));
  return {
    summary: async (scope, signal) => summaryOf(await provider.stats(scope, signal), scope),
    resourceMetrics: (signal) => resources.expose(signal),
    cadvisorMetrics: (signal) => page.get((_, ageMs) => ageMs < cgroupsForMs, signal),
  };
}
