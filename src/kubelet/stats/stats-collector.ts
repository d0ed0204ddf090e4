import { join } from 'node:path';
import {
  apiTime,
  type CgroupHost,
  type CgroupLayout,
  type Clock,
  cgroupPids,
  SingleFlight,
} from '../../lib/index.ts';
import type { Pod } from '../../pods/index.ts';
import {
  type CgroupUsage,
  defaultInterface,
  type HostMemory,
  hostMemory,
  interfacesIn,
  readCgroupUsage,
} from '../../resources/index.ts';
import type { RuntimeContainerStats } from '../../runtime/index.ts';
import type {
  ContainerUsage,
  DiskUsage,
  FileUsage,
  NetworkUsage,
  NodeStats,
  PodUsage,
  StatsWish,
  Usage,
  VolumeUsage,
} from './node-stats.ts';
import { type RatesPass, UsageRates } from './usage-rates.ts';

/** What the stats of a node are found by; each is a look that changes nothing. */
export interface StatsSources {
  readonly clock: Clock;
  readonly nodeName: string;
  readonly host: CgroupHost;
  readonly layout: CgroupLayout;
  readonly containers: (signal: AbortSignal) => Promise<readonly RuntimeContainerStats[]>;
  readonly pods: () => readonly Pod[];
  /** The path of a pod's cgroup below each tree; empty for none. */
  readonly cgroupOf: (pod: Pod) => string;
  /** Cgroups beside those of single pods that are told of, by the names they have there. */
  readonly systemCgroups: Readonly<Record<string, string>>;
  /** Our own process. */
  readonly self: () => { readonly cpuNanos: number; readonly rssBytes: number; readonly startMs: number };
  readonly disk: () => Promise<DiskUsage | undefined>;
  readonly images: (signal: AbortSignal) => Promise<NodeStats['images']>;
  /** What lies in the directory of a container's logs. */
  readonly logs: (pod: RuntimeContainerStats) => Promise<FileUsage | undefined>;
  /** What the volumes of a pod hold; nothing is said of them unless given. */
  readonly volumes?: ((pod: Pod, signal: AbortSignal) => Promise<readonly VolumeUsage[]>) | undefined;
}

/** Finds out what a node and its pods have used. Whoever asks while one looks gets the same answer. */
export class StatsCollector {
  readonly #sources: StatsSources;
  readonly #rates = new UsageRates();
  readonly #flights = new SingleFlight<StatsWish, NodeStats>();

  constructor(sources: StatsSources) {
    this.#sources = sources;
  }

  async collect(wish: StatsWish, signal: AbortSignal): Promise<NodeStats> {
    const look = (inner: AbortSignal) => new Look(this.#sources, this.#rates.begin()).collect(wish, inner);
    return await this.#flights.run(wish, look, signal);
  }
}

/** One look at everything. */
class Look {
  readonly #sources: StatsSources;
  readonly #rates: RatesPass;

  constructor(sources: StatsSources, rates: RatesPass) {
    this.#sources = sources;
    this.#rates = rates;
  }

  async collect(wish: StatsWish, signal: AbortSignal): Promise<NodeStats> {
    const { nodeName, containers, host, disk, images } = this.#sources;
    const all = wish === 'all';
    const [found, memory, stat] = await Promise.all([
      containers(signal),
      host.read('/proc/meminfo').then(hostMemory),
      host.read('/proc/stat'),
    ]);
    const stats: NodeStats = {
      nodeName,
      startTime: apiTime(Number(/^btime (\d+)/m.exec(stat)?.[1] ?? 0) * 1_000),
      usage: await this.#nodeUsage(memory),
      system: await this.#system(),
      pods: await this.#pods(found, wish, signal),
      network: all ? await this.#network('/proc/self', undefined) : undefined,
      disk: all ? await disk() : undefined,
      images: all ? await images(signal).catch(() => undefined) : undefined,
      processes: all ? await this.#processes() : undefined,
    };
    this.#rates.end();
    return stats;
  }

  async #nodeUsage(memory: HostMemory): Promise<Usage> {
    const whole = await this.#cgroup('/');
    const used = whole.memory ?? memory.usage;
    return {
      ...this.#usage('node', whole),
      memory: { ...used, availableBytes: Math.max(memory.totalBytes - used.workingSetBytes, 0) },
      swapBytes: memory.swapUsageBytes,
      swapAvailableBytes: memory.swapTotalBytes - memory.swapUsageBytes,
    };
  }

  async #system(): Promise<readonly ContainerUsage[]> {
    const { self, systemCgroups, clock } = this.#sources;
    const { cpuNanos, rssBytes, startMs } = self();
    const memory = { usageBytes: rssBytes, workingSetBytes: rssBytes, rssBytes };
    const atMs = clock.now();
    const own: Usage = {
      atMs,
      cpuNanos,
      nanoCores: this.#rates.note('system/kubelet', atMs, cpuNanos),
      memory,
      swapBytes: undefined,
    };
    const others = Object.entries(systemCgroups).map(async ([name, path]) => ({
      name,
      startTime: undefined,
      usage: this.#usage(`system/${name}`, await this.#cgroup(path)),
    }));
    return [{ name: 'kubelet', startTime: apiTime(startMs), usage: own }, ...(await Promise.all(others))];
  }

  async #pods(
    found: readonly RuntimeContainerStats[],
    wish: StatsWish,
    signal: AbortSignal,
  ): Promise<readonly PodUsage[]> {
    const known = new Map<string, Pod>(this.#sources.pods().map((pod) => [pod.metadata.uid, pod]));
    const byPod = Map.groupBy(found, ({ podUid }) => podUid);
    return await Promise.all(
      [...byPod].map(([uid, containers]) => this.#pod(known.get(uid), containers, wish, signal)),
    );
  }

  async #pod(
    pod: Pod | undefined,
    found: readonly RuntimeContainerStats[],
    wish: StatsWish,
    signal: AbortSignal,
  ): Promise<PodUsage> {
    const [{ podUid: uid = '', podName: name = '', podNamespace: namespace = '' } = {}] = found;
    const path = pod === undefined ? '' : this.#sources.cgroupOf(pod);
    const cgroup = path === '' ? undefined : await this.#cgroup(path);
    const containers = await Promise.all(found.map((each) => this.#container(pod, each, wish)));
    const isShown = wish === 'all' && path !== '' && pod?.spec.hostNetwork !== true;
    return {
      name,
      namespace,
      uid,
      startTime: pod?.status?.startTime,
      usage: cgroup?.memory === undefined ? together(containers) : this.#usage(`pod/${uid}`, cgroup),
      processes: cgroup?.processes,
      network: isShown ? await this.#podNetwork(path) : undefined,
      containers,
      volumes: wish === 'all' && pod !== undefined ? await this.#sources.volumes?.(pod, signal) : undefined,
    };
  }

  async #container(
    pod: Pod | undefined,
    stats: RuntimeContainerStats,
    wish: StatsWish,
  ): Promise<ContainerUsage> {
    const { id, name, atMs, cpuNanos, nanoCores, memory, swapBytes, swapAvailableBytes, layer } = stats;
    const rate = this.#rates.note(id, atMs, cpuNanos);
    const usage = {
      atMs,
      cpuNanos,
      nanoCores: nanoCores ?? rate,
      memory,
      swapBytes,
      swapAvailableBytes,
    };
    const plain = { name, startTime: startOf(pod, name), usage };
    return wish === 'all' ? { ...plain, rootfs: layer, logs: await this.#sources.logs(stats) } : plain;
  }

  async #cgroup(path: string): Promise<CgroupUsage> {
    const { layout, host } = this.#sources;
    return await readCgroupUsage(layout, path, host);
  }

  #usage(key: string, { cpuNanos, memory, swapBytes }: CgroupUsage): Usage {
    const atMs = this.#sources.clock.now();
    return { atMs, cpuNanos, nanoCores: this.#rates.note(key, atMs, cpuNanos), memory, swapBytes };
  }

  /** Every process of a pod sees the pod's network. */
  async #podNetwork(path: string): Promise<NetworkUsage | undefined> {
    const { layout, host } = this.#sources;
    const root = layout.version === 2 ? layout.root : (layout.controllers.get('memory') ?? '');
    const pid = (await cgroupPids(host, [join(root, path)])).find((each) => each > 0);
    return pid === undefined ? undefined : await this.#network(`/proc/${pid}`, 'eth0');
  }

  async #network(process: string, main: string | undefined): Promise<NetworkUsage | undefined> {
    const { host, clock } = this.#sources;
    const dev = await host.read(`${process}/net/dev`).catch(() => undefined);
    if (dev === undefined) return undefined;
    const route = main ?? defaultInterface(await host.read(`${process}/net/route`).catch(() => ''));
    return { atMs: clock.now(), main: route, interfaces: interfacesIn(dev) };
  }

  async #processes(): Promise<NodeStats['processes']> {
    const { host } = this.#sources;
    const [max, load] = await Promise.all(
      ['/proc/sys/kernel/pid_max', '/proc/loadavg'].map((path) => host.read(path).catch(() => '')),
    );
    const current = /\d+\/(\d+)/.exec(load ?? '')?.[1];
    return current === undefined ? undefined : { max: Number(max), current: Number(current) };
  }
}

/** Where a pod has no cgroup of its own, its containers are all there is of it. */
function together(containers: readonly ContainerUsage[]): Usage {
  const sum = (of: (usage: Usage) => number | undefined) => {
    const parts = containers.map(({ usage }) => of(usage)).filter((part) => part !== undefined);
    return parts.length === 0 ? undefined : parts.reduce((total, part) => total + part, 0);
  };
  return {
    atMs: Math.max(...containers.map(({ usage }) => usage.atMs)),
    cpuNanos: sum(({ cpuNanos }) => cpuNanos),
    nanoCores: sum(({ nanoCores }) => nanoCores),
    memory: {
      usageBytes: sum(({ memory }) => memory?.usageBytes) ?? 0,
      workingSetBytes: sum(({ memory }) => memory?.workingSetBytes) ?? 0,
      rssBytes: sum(({ memory }) => memory?.rssBytes) ?? 0,
    },
    swapBytes: sum(({ swapBytes }) => swapBytes),
  };
}

function startOf(pod: Pod | undefined, container: string): string | undefined {
  const {
    containerStatuses = [],
    initContainerStatuses = [],
    ephemeralContainerStatuses = [],
  } = pod?.status ?? {};
  const all = [...containerStatuses, ...initContainerStatuses, ...ephemeralContainerStatuses];
  return all.find(({ name }) => name === container)?.state?.running?.startedAt;
}
