import { type Clock, withDeadline } from '../../lib/index.ts';
import type { Pod, PodUid } from '../../pods/index.ts';
import type {
  ContainerUsage,
  DiskUsage,
  NodeUsage,
  PodUsage,
  StatsProvider,
  VolumeUsage,
} from '../../stats/index.ts';
import type {
  DiskLayout,
  DiskObservation,
  EvictionStats,
  FilesUsage,
  MemoryObservation,
  NodeObservation,
  PodResourceUsage,
  SignalObservation,
  StatsRequirements,
} from './eviction-stats.ts';

type Provider = Pick<StatsProvider, 'node' | 'stats' | 'layersCountedAtMs'>;

export interface ProvidedStatsDeps {
  readonly clock: Clock;
  readonly provider: () => Promise<Provider | undefined>;
}

/** The deadline of complete pod stats; measuring log sizes may take nearly as long. */
const wholeMs = 25_000;
/** The deadline for newer layer sizes; runtimes measure them every ten seconds. */
const layersMs = 12_000;
const layersPollMs = 1_000;

/**
 * Provides the usage of the node and its pods from the stats provider of the kubelet API, never
 * from its cache.
 */
export class ProvidedStats implements EvictionStats {
  readonly #deps: ProvidedStatsDeps;

  constructor(deps: ProvidedStatsDeps) {
    this.#deps = deps;
  }

  async layout(signal: AbortSignal): Promise<DiskLayout> {
    const { disk, images, containers } = await this.#figures(signal);
    if (images === undefined) throw new Error('The container runtime does not report the image file system');
    const [ofImages, ofContainers] = [images.disk?.device, containers?.disk?.device];
    // An image file system without a known device counts as nodefs.
    if (ofImages === undefined || ofImages === disk?.device) return 'single';
    return ofContainers === undefined || ofContainers === ofImages ? 'dedicated' : 'split';
  }

  async node(signal: AbortSignal): Promise<NodeObservation> {
    const { usage, machineMemory, system, disk, images, containers, processes } = await this.#figures(signal);
    return {
      memory: memoryLeft(usage, machineMemory),
      podsMemory: podsMemoryLeft(system),
      nodefs: diskLeft(disk),
      imagefs: diskLeft(images?.disk),
      containerfs: diskLeft(containers?.disk),
      pids: processes && {
        atMs: processes.atMs,
        available: Math.max(processes.max - processes.current, 0),
        capacity: processes.max,
      },
    };
  }

  /**
   * Reads the usage of pods. If the runtime does not respond in time, only CPU and memory are read,
   * which come from the kernel.
   */
  async pods(
    pods: readonly Pod[],
    { layersAtMs }: StatsRequirements,
    signal: AbortSignal,
  ): Promise<ReadonlyMap<PodUid, PodResourceUsage>> {
    const provider = await this.#provider();
    const uids = new Set<string>(pods.map(({ metadata }) => metadata.uid));
    if (layersAtMs !== undefined) await this.#awaitLayers(provider, uids, layersAtMs, signal);
    const ages = { maxAgeMs: 0, volumesMaxAgeMs: 0, volumesOf: uids };
    const limit = { clock: this.#deps.clock, ms: wholeMs, what: 'find out what pods use' };
    const stats = await withDeadline(limit, (inner) => provider.stats('all', inner, ages), signal).catch(
      async () => {
        signal.throwIfAborted();
        return await withDeadline(limit, (inner) => provider.stats('cpu-and-memory', inner, ages), signal);
      },
    );
    const requested = stats.pods.filter(({ uid }) => uids.has(uid));
    return new Map(requested.map((pod) => [pod.uid as PodUid, measuresOf(pod)]));
  }

  /**
   * Waits for layer sizes measured at or after the given time; if none arrive in time, the stale
   * ones are used.
   */
  async #awaitLayers(
    provider: Provider,
    uids: ReadonlySet<string>,
    atMs: number,
    signal: AbortSignal,
  ): Promise<void> {
    const { clock } = this.#deps;
    const limit = { clock, ms: layersMs, what: 'wait until what containers have written is counted' };
    const counted = async (inner: AbortSignal) => {
      while ((await provider.layersCountedAtMs(uids, inner)) < atMs) await clock.sleep(layersPollMs, inner);
    };
    await withDeadline(limit, counted, signal).catch(() => signal.throwIfAborted());
  }

  async #figures(signal: AbortSignal): Promise<NodeUsage> {
    return await (await this.#provider()).node(signal, { maxAgeMs: 0 });
  }

  async #provider(): Promise<Provider> {
    const provider = await this.#deps.provider();
    if (provider === undefined) throw new Error('The machine reports no resource usage');
    return provider;
  }
}

function memoryLeft(
  { atMs, memory }: NodeUsage['usage'],
  machine: NodeUsage['machineMemory'],
): MemoryObservation | undefined {
  if (machine === undefined || memory?.availableBytes === undefined) return undefined;
  const { totalBytes, availableBytes: kernelAvailable } = machine;
  return { atMs, available: memory.availableBytes, capacity: totalBytes, kernelAvailable };
}

function podsMemoryLeft(system: readonly ContainerUsage[]): SignalObservation | undefined {
  const { usage } = system.find(({ name }) => name === 'pods') ?? {};
  const { availableBytes: available, workingSetBytes } = usage?.memory ?? {};
  if (usage === undefined || available === undefined || workingSetBytes === undefined) return undefined;
  return { atMs: usage.atMs, available, capacity: available + workingSetBytes };
}

function diskLeft(disk: DiskUsage | undefined): DiskObservation | undefined {
  if (disk === undefined) return undefined;
  const { atMs, availableBytes, capacityBytes, inodes, inodesFree } = disk;
  return {
    bytes: { atMs, available: availableBytes, capacity: capacityBytes },
    // Some file systems do not count inodes.
    inodes: inodes === 0 ? undefined : { atMs, available: inodesFree, capacity: inodes },
  };
}

function measuresOf({
  usage,
  processes,
  containers,
  volumes = [],
  otherFiles = [],
}: PodUsage): PodResourceUsage {
  return {
    memoryBytes: usage.memory?.workingSetBytes,
    processes,
    containers: containers.map(({ name, usage: used, rootfs, logs }) => ({
      name,
      memoryBytes: used.memory?.workingSetBytes,
      rootfs: rootfs && filesOf(rootfs),
      logs: logs && filesOf(logs),
    })),
    volumes: new Map(volumes.filter(isCounted).map((volume) => [volume.name, filesOf(volume)])),
    others: {
      bytes: otherFiles.reduce((sum, { usedBytes }) => sum + usedBytes, 0),
      inodes: otherFiles.reduce((sum, { inodesUsed }) => sum + inodesUsed, 0),
    },
  };
}

function isCounted({ isScratch, usedBytes }: VolumeUsage): boolean {
  return isScratch && usedBytes !== undefined;
}

function filesOf({
  usedBytes = 0,
  inodesUsed = 0,
}: Partial<Pick<DiskUsage, 'usedBytes' | 'inodesUsed'>>): FilesUsage {
  return { bytes: usedBytes, inodes: inodesUsed };
}
