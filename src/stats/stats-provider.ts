import type { CriClient } from '../cri/index.ts';
import { apiTime, type CgroupHost, type CgroupLayout, type Clock } from '../lib/index.ts';
import { CachedSample } from './cached-sample.ts';
import type { Written } from './cadvisor-metrics.ts';
import { listContainerStats, type RuntimeContainerStats } from './container-stats.ts';
import { DiskSampler, type DiskSamplerDeps, type Layers, type Logs } from './disk-sampler.ts';
import { type KernelSample, KernelSampler, type NodeSample, type SampledPod } from './kernel-sampler.ts';
import type {
  ContainerUsage,
  NodeStats,
  NodeUsage,
  PodUsage,
  StatsMachine,
  StatsScope,
  VolumeUsage,
} from './node-stats.ts';
import type { PodSubject } from './pod-subjects.ts';
import type { VolumeUsages } from './volume-usages.ts';

export interface StatsProviderDeps extends Pick<DiskSamplerDeps, 'rootDir' | 'podLogsDir' | 'sandboxesDir'> {
  readonly clock: Clock;
  readonly nodeName: string;
  readonly host: CgroupHost;
  readonly layout: CgroupLayout;
  readonly machine: StatsMachine;
  readonly cri: Pick<CriClient, 'listContainerStats' | 'imageFsInfo'>;
  /** Returns the pods with a running container. */
  readonly pods: () => readonly PodSubject[];
  /** Paths of reported cgroups that do not belong to pods, by name. */
  readonly systemCgroups: Readonly<Record<string, string>>;
  readonly runtimeSocket?: string | undefined;
  /** Measures volumes; undefined to report no volumes. */
  readonly volumes?: Pick<VolumeUsages, 'peek' | 'of' | 'retain'> | undefined;
}

/** Maximum ages of returned stats. */
export interface StatsAges {
  /** Maximum age of returned stats; the default suits occasional readers. */
  readonly maxAgeMs?: number | undefined;
  /** Maximum age of volume stats, which are slow to read; the configured period when undefined. */
  readonly volumesMaxAgeMs?: number | undefined;
  /** UIDs of the pods to which the maximum age of volume stats applies; all pods when undefined. */
  readonly volumesOf?: ReadonlySet<string> | undefined;
}

export interface LogSize {
  readonly uid: string;
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
  readonly usedBytes: number;
}

interface RuntimeResponse {
  readonly byId: ReadonlyMap<string, RuntimeContainerStats>;
  readonly receivedMs: number;
}

interface PodFiles {
  readonly layers: Layers;
  readonly logs: Logs;
}

const readerAgeMs = 10_000;
const logSizesForMs = 60_000;
/** Minimum interval between the two samples of a rate. */
const secondSampleMs = 1_000;

type Disks = Pick<NodeUsage, 'disk' | 'images' | 'containers'>;

/**
 * Provides usage of the node and its pods. Callers share the last stats when they are new enough,
 * otherwise the result of a running or a new read. Each value has its own timestamp.
 */
export class StatsProvider implements Disposable {
  readonly #deps: StatsProviderDeps;
  readonly #sampler: KernelSampler;
  readonly #runtime: CachedSample<RuntimeResponse>;
  readonly #kernel: CachedSample<KernelSample>;
  readonly #usages: CachedSample<KernelSample>;
  readonly #node: CachedSample<NodeSample>;
  readonly #disks: CachedSample<Disks>;
  readonly #layers: CachedSample<Layers>;
  readonly #logs: CachedSample<Logs>;
  #podsNow: readonly PodSubject[] | undefined;

  constructor(deps: StatsProviderDeps) {
    this.#deps = deps;
    const { clock, cri } = deps;
    this.#runtime = new CachedSample(clock, async (signal) => {
      const stats = await listContainerStats(cri, signal);
      return { byId: new Map(stats.map((each) => [each.id, each])), receivedMs: clock.monotonicMs() };
    });
    // The runtime's stats are used twice per pass; their age counts from the response.
    const isNew = ({ receivedMs }: RuntimeResponse) => clock.monotonicMs() - receivedMs < secondSampleMs;
    const runtimeStats = async (signal: AbortSignal) => (await this.#runtime.get(isNew, signal)).byId;
    const kernel = new KernelSampler({ ...deps, runtimeStats });
    this.#sampler = kernel;
    const disks = new DiskSampler({ ...deps, runtimeStats });
    this.#kernel = new CachedSample(clock, (signal) => kernel.sample(this.#pods(), 'all', signal));
    this.#usages = new CachedSample(clock, (signal) => kernel.sample(this.#pods(), 'cpu-and-memory', signal));
    this.#node = new CachedSample(clock, () => kernel.node());
    this.#disks = new CachedSample(clock, (signal) => disks.disks(signal));
    this.#layers = new CachedSample(clock, (signal) => disks.layers(signal));
    this.#logs = new CachedSample(clock, (signal) => disks.logs(this.#pods(), signal));
  }

  /** Closes all open files; later calls open them again. */
  [Symbol.dispose](): void {
    this.#sampler[Symbol.dispose]();
  }

  /** Reads stats of the node without pods, which is cheap enough for every second. */
  async node(signal: AbortSignal, { maxAgeMs = readerAgeMs }: StatsAges = {}): Promise<NodeUsage> {
    const isGood = (_: unknown, ageMs: number) => ageMs < maxAgeMs;
    const [sample, disks] = await Promise.all([
      this.#node.get(isGood, signal),
      this.#disks.get(isGood, signal),
    ]);
    const { usage, machineMemory, system, network, processes } = sample;
    return { usage, machineMemory, system, network, processes, ...disks };
  }

  async stats(scope: StatsScope, signal: AbortSignal, ages: StatsAges = {}): Promise<NodeStats> {
    const { maxAgeMs = readerAgeMs } = ages;
    const isGood = (_: unknown, ageMs: number) => ageMs < maxAgeMs;
    const isRated = (sample: KernelSample, ageMs: number) =>
      ageMs < maxAgeMs && (ageMs < secondSampleMs || this.#isComplete(sample));
    const plain = ({ usage, system, startTime }: KernelSample) => ({
      nodeName: this.#deps.nodeName,
      startTime,
      usage,
      system,
    });
    if (scope === 'cpu-and-memory') {
      const kernel = this.#kernel.peek(isRated) ?? (await this.#usages.get(isRated, signal));
      return { ...plain(kernel), pods: kernel.pods.map((pod) => plainPod(pod)) };
    }
    const kernelSample = this.#kernel.get(isRated, signal);
    const [kernel, disks, logs, layers] = await Promise.all([
      kernelSample,
      this.#disks.get(isGood, signal),
      this.#logs.get(isGood, signal),
      // Layer sizes are requested after the kernel pass, so that the kubelet and the runtime do not
      // read the same cgroups at the same time.
      kernelSample.then(() => this.#layers.get(isGood, signal)),
    ]);
    const { network, processes } = kernel;
    const pods = await this.#podUsages(kernel.pods, { layers, logs }, ages, signal);
    return { ...plain(kernel), ...disks, network, processes, pods };
  }

  /** Returns the pods to measure; calls that start at the same time share one result. */
  #pods(): readonly PodSubject[] {
    if (this.#podsNow === undefined)
      queueMicrotask(() => {
        this.#podsNow = undefined;
      });
    this.#podsNow ??= this.#deps.pods();
    return this.#podsNow;
  }

  /** Whether the sample includes all running pods and all rates. */
  #isComplete({ isFirstOfSome, pods }: KernelSample): boolean {
    const ids = new Set(pods.flatMap(({ containers }) => containers.map(({ id }) => id)));
    const running = this.#deps.pods().flatMap(({ containers }) => containers);
    return !isFirstOfSome && running.every(({ id }) => ids.has(id));
  }

  /** Returns the log sizes of containers, refreshed periodically. */
  async logSizes(signal: AbortSignal): Promise<readonly LogSize[]> {
    const logs = await this.#logs.get((_, ageMs) => ageMs < logSizesForMs, signal);
    return this.#deps.pods().flatMap(({ uid, namespace, name: pod }) => {
      const containers = [...(logs.get(uid)?.containers ?? [])];
      return containers.map(([container, { usedBytes }]) => ({ uid, namespace, pod, container, usedBytes }));
    });
  }

  /** Returns the writable layer sizes of containers and the file system of the layers. */
  async written(signal: AbortSignal): Promise<Written> {
    const isGood = (_: unknown, ageMs: number) => ageMs < readerAgeMs;
    const [{ disk, images, containers }, layers] = await Promise.all([
      this.#disks.get(isGood, signal),
      this.#layers.get(isGood, signal),
    ]);
    const own = [[this.#deps.rootDir, disk] as const];
    const fileSystems = [images, containers].map((each) => [each?.mountPoint ?? '', each?.disk] as const);
    const disks = [...own, ...fileSystems].flatMap(([path, space]) =>
      space === undefined ? [] : [[path, space] as const],
    );
    return { layers, disk: containers?.disk, disks: new Map(disks) };
  }

  /**
   * Returns the oldest time at which the runtime measured the layer sizes of these pods; infinity
   * when none was measured.
   */
  async layersCountedAtMs(uids: ReadonlySet<string>, signal: AbortSignal): Promise<number> {
    const layers = await this.#layers.get((_, ageMs) => ageMs < secondSampleMs, signal);
    const containers = this.#deps.pods().flatMap((pod) => (uids.has(pod.uid) ? pod.containers : []));
    // Ignores layers without a time, which runtimes may omit.
    const times = containers.flatMap(({ id }) => layers.get(id)?.atMs ?? []);
    return Math.min(...times, Number.POSITIVE_INFINITY);
  }

  async #podUsages(
    pods: readonly SampledPod[],
    files: PodFiles,
    { volumesMaxAgeMs, volumesOf }: StatsAges,
    signal: AbortSignal,
  ): Promise<readonly PodUsage[]> {
    const { volumes } = this.#deps;
    const known = pods.map(({ subject }) => subject.pod).filter((pod) => pod !== undefined);
    volumes?.retain(known);
    const held = pods.map(({ subject: { pod, uid } }) => {
      const maxAgeMs = volumesOf?.has(uid) === false ? undefined : volumesMaxAgeMs;
      if (pod === undefined) return undefined;
      return volumes?.peek(pod, maxAgeMs) ?? volumes?.of(pod, signal, maxAgeMs);
    });
    const counted = held.some((each) => each instanceof Promise) ? await Promise.all(held) : held;
    return pods.map((sampled, index) => ({
      ...podUsage(sampled, files),
      volumes: counted[index] as readonly VolumeUsage[] | undefined,
    }));
  }
}

function plainPod({ subject, usage, containers }: SampledPod): PodUsage {
  const { name, namespace, uid, startTime } = subject;
  return {
    name,
    namespace,
    uid,
    startTime,
    usage,
    processes: undefined,
    containers: containers.map((container) => plainContainer(container)),
  };
}

function podUsage(sampled: SampledPod, { layers, logs }: PodFiles): PodUsage {
  const { subject, processes, network, containers } = sampled;
  const own = logs.get(subject.uid);
  return {
    ...plainPod(sampled),
    processes,
    network,
    containers: containers.map((container) => ({
      ...plainContainer(container),
      rootfs: layers.get(container.id),
      logs: own?.containers.get(container.name),
    })),
    otherFiles: own?.otherFiles,
  };
}

function plainContainer({ name, createdAtMs, usage }: SampledPod['containers'][number]): ContainerUsage {
  return { name, startTime: apiTime(createdAtMs), usage };
}
