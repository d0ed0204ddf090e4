import { join } from 'node:path';
import type { CriClient } from '../../cri/index.ts';
import {
  type CgroupHost,
  type CgroupLayout,
  type Clock,
  detectCgroupLayout,
  withDeadline,
} from '../../lib/index.ts';
import type { Pod, PodUid } from '../../pods/index.ts';
import {
  type ContainerMeasures,
  type DiskLayout,
  type DiskLeft,
  type EvictionStats,
  type FileSystemSpace,
  type FileSystems,
  type FilesUsage,
  hostMemory,
  type Left,
  type MemoryLeft,
  type NodeMeasures,
  type PodMeasures,
  readCgroupUsage,
} from '../../resources/index.ts';
import { listContainerStats, podLogDirectory, type RuntimeContainerStats } from '../../runtime/index.ts';
import type { VolumePlace } from '../stats/index.ts';

/** What of a node is found by its files and its runtime. */
export interface UsageSources {
  readonly clock: Clock;
  readonly cri: Pick<CriClient, 'imageFsInfo' | 'listContainerStats'>;
  readonly host: CgroupHost;
  readonly rootDir: string;
  readonly podLogsDir: string;
  /** The path of the cgroup of all pods below each tree; undefined for none. */
  readonly podsCgroup: string | undefined;
  /** The path of a pod's cgroup below each tree; empty for none. */
  readonly cgroupOf: (pod: Pod) => string;
  readonly placesOf: (pod: Pod) => readonly VolumePlace[];
  /** What the files of a directory take of the disk it is on. */
  readonly usageIn: (directory: string, signal: AbortSignal) => Promise<FilesUsage>;
  readonly fileSystems: FileSystems;
}

interface Mounts {
  readonly images: string | undefined;
  readonly containers: string | undefined;
}

/** A directory with very many files takes long to count: it is left out then. */
const countMs = 10_000;
const countedAtOnce = 4;
const runtimeMs = 5_000;

/** Finds what is left and what is used by files of the kernel, the runtime and a walk through what pods have written. */
export class MachineUsage implements EvictionStats {
  readonly #sources: UsageSources;
  #cgroups: Promise<CgroupLayout> | undefined;
  #mounts: Mounts = { images: undefined, containers: undefined };

  constructor(sources: UsageSources) {
    this.#sources = sources;
  }

  async layout(signal: AbortSignal): Promise<DiskLayout> {
    const { cri, rootDir, fileSystems } = this.#sources;
    const { imageFilesystems, containerFilesystems } = await cri.imageFsInfo({}, signal);
    const images = imageFilesystems[0]?.fsId?.mountpoint;
    const containers = containerFilesystems[0]?.fsId?.mountpoint ?? images;
    this.#mounts = { images, containers };
    const deviceAt = async (path = rootDir) => (await fileSystems.at(path).catch(() => undefined))?.device;
    const [ofNode, ofImages, ofContainers] = await Promise.all([rootDir, images, containers].map(deviceAt));
    // What cannot be seen from here is on no disk that could be looked after.
    if (ofImages === undefined || ofImages === ofNode) return 'single';
    return ofContainers === undefined || ofContainers === ofImages ? 'dedicated' : 'split';
  }

  async node(): Promise<NodeMeasures> {
    const { podsCgroup, rootDir } = this.#sources;
    const { images, containers } = this.#mounts;
    const [memory, podsMemory, nodefs, imagefs, containerfs, pids] = await Promise.all([
      this.#memory(),
      podsCgroup === undefined ? undefined : this.#podsMemory(podsCgroup),
      this.#disk(rootDir),
      this.#disk(images),
      this.#disk(containers),
      this.#pids(),
    ]);
    return { memory, podsMemory, nodefs, imagefs, containerfs, pids };
  }

  async pods(pods: readonly Pod[], signal: AbortSignal): Promise<ReadonlyMap<PodUid, PodMeasures>> {
    const stats = await this.#containerStats(signal);
    const byPod = Map.groupBy(stats, ({ podUid }) => podUid);
    const found = new Map<PodUid, PodMeasures>();
    const waiting = [...pods];
    const work = async () => {
      for (let pod = waiting.shift(); pod !== undefined; pod = waiting.shift()) {
        const { uid } = pod.metadata;
        const measures = await this.#pod(pod, byPod.get(uid) ?? [], signal);
        if (measures !== undefined) found.set(uid, measures);
      }
    };
    await Promise.all(Array.from({ length: countedAtOnce }, work));
    return found;
  }

  /** A runtime that does not answer must not keep the kernel's own figures from who needs them. */
  async #containerStats(signal: AbortSignal): Promise<readonly RuntimeContainerStats[]> {
    const { clock, cri } = this.#sources;
    const limit = { clock, ms: runtimeMs, what: 'ask the container runtime what containers use' };
    try {
      return await withDeadline(limit, (inner) => listContainerStats(cri, inner), signal);
    } catch {
      signal.throwIfAborted();
      return [];
    }
  }

  /** Nothing is known of a pod of which nothing runs. */
  async #pod(
    pod: Pod,
    stats: readonly RuntimeContainerStats[],
    signal: AbortSignal,
  ): Promise<PodMeasures | undefined> {
    const path = this.#sources.cgroupOf(pod);
    const cgroup = path === '' ? undefined : await this.#cgroup(path);
    if (stats.length === 0 && cgroup?.memory === undefined) return undefined;
    const containers: ContainerMeasures[] = [];
    for (const each of stats) containers.push(await this.#container(pod, each, signal));
    const together = containers.reduce((sum, { memoryBytes = 0 }) => sum + memoryBytes, 0);
    return {
      memoryBytes: cgroup?.memory?.workingSetBytes ?? together,
      processes: cgroup?.processes,
      containers,
      volumes: await this.#volumes(pod, signal),
    };
  }

  async #container(
    pod: Pod,
    { name, memory, layer }: RuntimeContainerStats,
    signal: AbortSignal,
  ): Promise<ContainerMeasures> {
    const logs = join(podLogDirectory(this.#sources.podLogsDir, pod), name);
    return {
      name,
      memoryBytes: memory.workingSetBytes,
      rootfs: layer && { bytes: layer.usedBytes, inodes: layer.inodesUsed },
      logs: await this.#count(logs, signal),
    };
  }

  async #volumes(pod: Pod, signal: AbortSignal): Promise<ReadonlyMap<string, FilesUsage>> {
    const found = new Map<string, FilesUsage>();
    for (const { name, directory, isScratch } of this.#sources.placesOf(pod)) {
      const usage = isScratch ? await this.#count(directory, signal) : undefined;
      if (usage !== undefined) found.set(name, usage);
    }
    return found;
  }

  async #count(directory: string, signal: AbortSignal): Promise<FilesUsage | undefined> {
    const { clock, usageIn } = this.#sources;
    const limit = { clock, ms: countMs, what: `count what is in ${directory}` };
    try {
      return await withDeadline(limit, (inner) => usageIn(directory, inner), signal);
    } catch {
      signal.throwIfAborted();
      return undefined;
    }
  }

  async #memory(): Promise<MemoryLeft | undefined> {
    const { host, clock } = this.#sources;
    const text = await host.read('/proc/meminfo').catch(() => undefined);
    if (text === undefined) return undefined;
    const { totalBytes, usage, availableBytes } = hostMemory(text);
    const { workingSetBytes } = (await this.#cgroup('/')).memory ?? usage;
    return {
      atMs: clock.now(),
      available: Math.max(totalBytes - workingSetBytes, 0),
      capacity: totalBytes,
      kernelAvailable: availableBytes,
    };
  }

  async #podsMemory(path: string): Promise<Left | undefined> {
    const { memory } = await this.#cgroup(path);
    if (memory?.availableBytes === undefined) return undefined;
    const { availableBytes: available, workingSetBytes } = memory;
    return { atMs: this.#sources.clock.now(), available, capacity: available + workingSetBytes };
  }

  async #disk(path: string | undefined): Promise<DiskLeft | undefined> {
    const { fileSystems, clock } = this.#sources;
    if (path === undefined) return undefined;
    const space = await fileSystems.at(path).catch(() => undefined);
    return space && diskLeft(space, clock.now());
  }

  async #pids(): Promise<Left | undefined> {
    const { host, clock } = this.#sources;
    const read = (path: string) => host.read(path).catch(() => '');
    const [pids, threads, load] = await Promise.all([
      read('/proc/sys/kernel/pid_max'),
      read('/proc/sys/kernel/threads-max'),
      read('/proc/loadavg'),
    ]);
    const tasks = /\d+\/(\d+)/.exec(load)?.[1];
    const limits = [pids, threads].map((text) => Number.parseInt(text, 10)).filter(Number.isFinite);
    if (tasks === undefined || limits.length === 0) return undefined;
    const capacity = Math.min(...limits);
    return { atMs: clock.now(), available: Math.max(capacity - Number(tasks), 0), capacity };
  }

  async #cgroup(path: string) {
    const { host } = this.#sources;
    this.#cgroups ??= detectCgroupLayout(host);
    return await readCgroupUsage(await this.#cgroups, path, host);
  }
}

function diskLeft(space: FileSystemSpace, atMs: number): DiskLeft {
  const { availableBytes, capacityBytes, inodes, inodesFree } = space;
  return {
    bytes: { atMs, available: availableBytes, capacity: capacityBytes },
    inodes: inodes === 0 ? undefined : { atMs, available: inodesFree, capacity: inodes },
  };
}
