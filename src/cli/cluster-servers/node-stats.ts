import { readdir, readlink, stat, statfs } from 'node:fs/promises';
import { release } from 'node:os';
import { join } from 'node:path';
import type { CriClient } from '../../cri/index.ts';
import type { Kubelet, KubeletSettings } from '../../kubelet/index.ts';
import {
  type CadvisorSources,
  cadvisorMetrics,
  type DiskUsage,
  type FileUsage,
  resourceMetrics,
  StatsCollector,
  scrapeError,
  summaryOf,
  VolumeUsages,
} from '../../kubelet/stats/index.ts';
import {
  type Clock,
  detectCgroupLayout,
  type Logger,
  MetricRegistry,
  realCgroupHost,
} from '../../lib/index.ts';
import type { Pod } from '../../pods/index.ts';
import { cgroupName, cgroupPath, parseCgroupPath } from '../../resources/index.ts';
import { listContainerStats } from '../../runtime/index.ts';
import type { StatsView } from '../../server/index.ts';
import { HostVolumeFiles } from '../../volumes/index.ts';

export interface NodeStatsOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly cri: CriClient;
  readonly kubelet: Pick<
    Kubelet,
    'podsWithStatus' | 'cgroupOf' | 'running' | 'volumePlacesOf' | 'volumeSpace'
  >;
  readonly settings: KubeletSettings;
  /** Where the runtime itself runs; empty for nobody knows. */
  readonly runtimeCgroups: string;
}

const minuteMs = 60_000;

/** What this machine and its pods have used, found by the kernel and the runtime each time it is asked for. */
export async function nodeStats(options: NodeStatsOptions): Promise<StatsView> {
  const { clock, logger, cri, kubelet, settings } = options;
  const host = realCgroupHost();
  const startMs = clock.now() - process.uptime() * 1_000;
  const shared = {
    clock,
    host,
    layout: await detectCgroupLayout(host),
    pods: () => kubelet.podsWithStatus(),
    cgroupOf: (pod: Pod) => kubelet.cgroupOf(pod),
  };
  const { volumeStatsMs: periodMs = minuteMs } = settings;
  const files = new HostVolumeFiles(clock);
  const volumes = new VolumeUsages({
    clock,
    periodMs,
    space: kubelet.volumeSpace ?? ((place, signal) => files.spaceAt(place, signal)),
    files,
    placesOf: (pod) => kubelet.volumePlacesOf(pod),
  });
  const collector = new StatsCollector({
    ...shared,
    nodeName: settings.nodeName,
    containers: (signal) => listContainerStats(cri, signal),
    systemCgroups: systemCgroups(options),
    self: () => {
      const { user, system } = process.cpuUsage();
      return { cpuNanos: (user + system) * 1_000, rssBytes: process.memoryUsage.rss(), startMs };
    },
    disk: () => diskAt(settings.rootDir, clock),
    images: (signal) => imagesOf(cri, clock, signal),
    logs: ({ podNamespace, podName, podUid, name }) =>
      filesIn(join(settings.podLogsDir, `${podNamespace}_${podName}_${podUid}`, name), clock),
    volumes: periodMs > 0 ? (pod, signal) => volumes.of(pod, signal) : undefined,
  });
  const onError = (error: unknown) => logger.error('Cannot collect a metric', error);
  const page = new MetricRegistry({ onError });
  page.collect(async (signal) => {
    const stats = await collector.collect('cpu-and-memory', signal).catch((error) => {
      signal.throwIfAborted();
      logger.error('Cannot find out what is used', error);
      return undefined;
    });
    return resourceMetrics(stats);
  });
  const cgroupPage = new MetricRegistry({ onError });
  const cgroups: CadvisorSources = {
    ...shared,
    running: (signal) => kubelet.running.get(signal),
    openFiles,
    async written(signal) {
      const [stats, images] = await Promise.all([
        listContainerStats(cri, signal),
        imagesOf(cri, clock, signal).catch(() => undefined),
      ]);
      const bytes = stats.flatMap(({ id, layer }) =>
        layer === undefined ? [] : [[id, layer.usedBytes] as const],
      );
      return { bytes: new Map(bytes), capacityBytes: images?.disk.capacityBytes };
    },
    otherCgroups: ['/', ...Object.values(systemCgroups(options))],
    machine: {
      cores: settings.capacity.milliCpu / 1_000,
      memoryBytes: settings.capacity.memoryBytes,
      kernel: release(),
    },
  };
  cgroupPage.collect((signal) =>
    cadvisorMetrics(cgroups, signal).catch((error) => {
      signal.throwIfAborted();
      logger.error('Cannot find out what cgroups use', error);
      return [scrapeError(1)];
    }),
  );
  return {
    async summary(wish, signal) {
      volumes.retain(shared.pods());
      return summaryOf(await collector.collect(wish, signal), wish);
    },
    resourceMetrics: (signal) => page.expose(signal),
    cadvisorMetrics: (signal) => cgroupPage.expose(signal),
  };
}

function systemCgroups({ settings, runtimeCgroups }: NodeStatsOptions): Readonly<Record<string, string>> {
  const { cgroupRoot, cgroupDriver, cgroupsPerQos } = settings;
  const pods = cgroupName(parseCgroupPath(cgroupRoot, cgroupDriver), 'kubepods');
  return {
    ...(runtimeCgroups === '' ? {} : { runtime: runtimeCgroups }),
    ...(cgroupsPerQos ? { pods: cgroupPath(pods, cgroupDriver) } : {}),
  };
}

async function diskAt(path: string, clock: Clock): Promise<DiskUsage | undefined> {
  const found = await statfs(path).catch(() => undefined);
  if (found === undefined) return undefined;
  const { blocks, bfree, bavail, bsize, files, ffree } = found;
  return {
    atMs: clock.now(),
    capacityBytes: blocks * bsize,
    availableBytes: bavail * bsize,
    usedBytes: (blocks - bfree) * bsize,
    inodes: files,
    inodesFree: ffree,
    inodesUsed: files - ffree,
  };
}

async function imagesOf(cri: Pick<CriClient, 'imageFsInfo'>, clock: Clock, signal: AbortSignal) {
  const [used] = (await cri.imageFsInfo({}, signal)).imageFilesystems;
  const disk = used?.fsId === undefined ? undefined : await diskAt(used.fsId.mountpoint, clock);
  if (used === undefined || disk === undefined) return undefined;
  const own: FileUsage = {
    atMs: Number(used.timestamp / 1_000_000n),
    usedBytes: Number(used.usedBytes?.value ?? 0n),
    inodesUsed: Number(used.inodesUsed?.value ?? 0n),
  };
  return { disk, own };
}

async function openFiles(pid: number): Promise<{ readonly all: number; readonly sockets: number }> {
  const directory = `/proc/${pid}/fd`;
  const names = await readdir(directory).catch(() => []);
  const targets = await Promise.all(names.map((name) => readlink(join(directory, name)).catch(() => '')));
  const sockets = targets.filter((target) => target.startsWith('socket:'));
  return { all: names.length, sockets: sockets.length };
}

const blockBytes = 512;

async function filesIn(directory: string, clock: Clock): Promise<FileUsage | undefined> {
  const names = await readdir(directory).catch(() => undefined);
  if (names === undefined) return undefined;
  const all = await Promise.all(names.map((name) => stat(join(directory, name)).catch(() => undefined)));
  const there = all.filter((each) => each !== undefined);
  const usedBytes = there.reduce((total, { blocks }) => total + blocks * blockBytes, 0);
  return { atMs: clock.now(), usedBytes, inodesUsed: there.length + 1 };
}
