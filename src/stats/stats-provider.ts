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
  /** The pods of which something runs now. */
  readonly pods: () => readonly PodSubject[];
  /** Cgroups beside those of single pods that are told of, by the names they have there. */
  readonly systemCgroups: Readonly<Record<string, string>>;
  readonly runtimeSocket?: string | undefined;
  /** Nothing is said of volumes unless given. */
  readonly volumes?: Pick<VolumeUsages, 'peek' | 'of' | 'retain'> | undefined;
}

/** How old what is told may be. */
export interface StatsAges {
  /** Who reads now and then is content with what is there. */
  readonly maxAgeMs?: number | undefined;
  /** Of volumes, whose files take long to count; the period of the configuration unless given. */
  readonly volumesMaxAgeMs?: number | undefined;
  /** Pods whose volumes must not be older than that, by UID; all unless given. */
  readonly volumesOf?: ReadonlySet<string> | undefined;
}

export interface LogSize {
  readonly uid: string;
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
  readonly usedBytes: number;
}

interface RuntimeAnswer {
  readonly byId: ReadonlyMap<string, RuntimeContainerStats>;
  readonly cameMs: number;
}

interface PodFiles {
  readonly layers: Layers;
  readonly logs: Logs;
}

const readerAgeMs = 10_000;
const logSizesForMs = 60_000;
/** To know how fast something grows it is looked at twice, so far apart. */
const secondLookMs = 1_000;

type Disks = Pick<NodeUsage, 'disk' | 'images' | 'containers'>;

/**
 * What the node and its pods have used. All who ask share what was found last, as long as it is new enough for them, and
 * one look under way: 0 asks for one that begins now or is under way. Each figure has its time.
 */
export class StatsProvider implements Disposable {
  readonly #deps: StatsProviderDeps;
  readonly #sampler: KernelSampler;
  readonly #runtime: CachedSample<RuntimeAnswer>;
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
      return { byId: new Map(stats.map((each) => [each.id, each])), cameMs: clock.monotonicMs() };
    });
    // What the runtime says is asked for twice for one look: it is new from when it came, however long that took.
    const isNew = ({ cameMs }: RuntimeAnswer) => clock.monotonicMs() - cameMs < secondLookMs;
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

  /** Nothing stays open; who asks after that opens it anew. */
  [Symbol.dispose](): void {
    this.#sampler[Symbol.dispose]();
  }

  /** The node itself, without a look at single pods: cheap enough to be asked every second. */
  async node(signal: AbortSignal, { maxAgeMs = readerAgeMs }: StatsAges = {}): Promise<NodeUsage> {
    const isGood = (_: unknown, ageMs: number) => ageMs < maxAgeMs;
    const [sample, disks] = await Promise.all([
      this.#node.get(isGood, signal),
      this.#disks.get(isGood, signal),
    ]);
    const { usage, machineMemory, system, network, processes } = sample;
    return { usage, machineMemory, system, network, processes, ...disks };
  }

  async stats(wish: StatsScope, signal: AbortSignal, ages: StatsAges = {}): Promise<NodeStats> {
    const { maxAgeMs = readerAgeMs } = ages;
    const isGood = (_: unknown, ageMs: number) => ageMs < maxAgeMs;
    const isRated = (sample: KernelSample, ageMs: number) =>
      ageMs < maxAgeMs && (ageMs < secondLookMs || this.#isSettled(sample));
    const plain = ({ usage, system, startTime }: KernelSample) => ({
      nodeName: this.#deps.nodeName,
      startTime,
      usage,
      system,
    });
    if (wish === 'cpu-and-memory') {
      const kernel = this.#kernel.peek(isRated) ?? (await this.#usages.get(isRated, signal));
      return { ...plain(kernel), pods: kernel.pods.map((pod) => plainPod(pod)) };
    }
    const look = this.#kernel.get(isRated, signal);
    const [kernel, disks, logs, layers] = await Promise.all([
      look,
      this.#disks.get(isGood, signal),
      this.#logs.get(isGood, signal),
      // The runtime looks at the same cgroups: beside each other both looks cost more.
      look.then(() => this.#layers.get(isGood, signal)),
    ]);
    const { network, processes } = kernel;
    const pods = await this.#wholePods(kernel.pods, { layers, logs }, ages, signal);
    return { ...plain(kernel), ...disks, network, processes, pods };
  }

  /** Found out once for all that begins at the same moment. */
  #pods(): readonly PodSubject[] {
    if (this.#podsNow === undefined)
      queueMicrotask(() => {
        this.#podsNow = undefined;
      });
    this.#podsNow ??= this.#deps.pods();
    return this.#podsNow;
  }

  /** Whether it knows all that runs, and how fast it goes. */
  #isSettled({ isFirstOfSome, pods }: KernelSample): boolean {
    const seen = new Set(pods.flatMap(({ containers }) => containers.map(({ id }) => id)));
    const running = this.#deps.pods().flatMap(({ containers }) => containers);
    return !isFirstOfSome && running.every(({ id }) => seen.has(id));
  }

  /** What containers have logged; told now and then only. */
  async logSizes(signal: AbortSignal): Promise<readonly LogSize[]> {
    const logs = await this.#logs.get((_, ageMs) => ageMs < logSizesForMs, signal);
    return this.#deps.pods().flatMap(({ uid, namespace, name: pod }) => {
      const containers = [...(logs.get(uid)?.containers ?? [])];
      return containers.map(([container, { usedBytes }]) => ({ uid, namespace, pod, container, usedBytes }));
    });
  }

  /** What containers have written, and the disks it is on. */
  async written(signal: AbortSignal): Promise<Written> {
    const isGood = (_: unknown, ageMs: number) => ageMs < readerAgeMs;
    const [{ disk, images, containers }, layers] = await Promise.all([
      this.#disks.get(isGood, signal),
      this.#layers.get(isGood, signal),
    ]);
    const own = [[this.#deps.rootDir, disk] as const];
    const others = [images, containers].map((each) => [each?.mountPoint ?? '', each?.disk] as const);
    const disks = [...own, ...others].flatMap(([path, space]) =>
      space === undefined ? [] : [[path, space] as const],
    );
    return { layers, disk: containers?.disk, disks: new Map(disks) };
  }

  /** Up to when all is counted that containers of these pods, by their UIDs, have written over their images. */
  async layersCountedAtMs(uids: ReadonlySet<string>, signal: AbortSignal): Promise<number> {
    const layers = await this.#layers.get((_, ageMs) => ageMs < secondLookMs, signal);
    const containers = this.#deps.pods().flatMap((pod) => (uids.has(pod.uid) ? pod.containers : []));
    // Of some a runtime says nothing at all.
    const times = containers.flatMap(({ id }) => layers.get(id)?.atMs ?? []);
    return Math.min(...times, Number.POSITIVE_INFINITY);
  }

  async #wholePods(
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
      ...wholePod(sampled, files),
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

function wholePod(sampled: SampledPod, { layers, logs }: PodFiles): PodUsage {
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
    others: own?.others,
  };
}

function plainContainer({ name, createdAtMs, usage }: SampledPod['containers'][number]): ContainerUsage {
  return { name, startTime: apiTime(createdAtMs), usage };
}
