import {
  apiTime,
  type CgroupHost,
  type CgroupLayout,
  type Clock,
  KeyedMutex,
  type Timer,
} from '../lib/index.ts';
import { Yielder } from './cached-sample.ts';
import {
  type CgroupPressure,
  type CgroupUsage,
  pressureIn,
  readCgroupUsage,
  type UsageScope,
} from './cgroup/cgroup-usage.ts';
import { defaultInterface, type HostMemory, hostMemory, interfacesIn } from './cgroup/host-usage.ts';
import { CgroupFileCache, ContainerCgroups, type ProcessesFound } from './cgroup-file-cache.ts';
import type { RuntimeContainerStats } from './container-stats.ts';
import { type RatesPass, UsageRates } from './container-stats.ts';
import type {
  ContainerUsage,
  NetworkUsage,
  NodeUsage,
  PodUsage,
  ProcessUsage,
  StatsMachine,
  StatsScope,
  SystemPart,
  Usage,
} from './node-stats.ts';
import type { ContainerSubject, PodSubject } from './pod-subjects.ts';

export interface KernelSamplerDeps {
  readonly clock: Clock;
  readonly host: CgroupHost;
  readonly layout: CgroupLayout;
  readonly machine: Pick<StatsMachine, 'self' | 'runtimeAt'>;
  /** Socket of the runtime, used to find its process when its cgroup is not configured. */
  readonly runtimeSocket?: string | undefined;
  /** Paths of reported cgroups that do not belong to pods, by name. */
  readonly systemCgroups: Readonly<Record<string, string>>;
  /**
   * Reads the runtime's stats by container id for containers whose cgroups are not found; called at
   * most once per pass.
   */
  readonly runtimeStats: (signal: AbortSignal) => Promise<ReadonlyMap<string, RuntimeContainerStats>>;
}

/** Time without a read after which files are closed; frequent readers keep them open. */
const openForMs = 30_000;

/** Stats of the node from the kernel at one time. */
export interface NodeSample
  extends Pick<NodeUsage, 'usage' | 'machineMemory' | 'system' | 'network' | 'processes'> {
  readonly startTime: string;
}

export interface KernelSample extends NodeSample {
  readonly pods: readonly SampledPod[];
  /** Whether a rate is still unknown, because its counter was read for the first time. */
  readonly isFirstOfSome: boolean;
}

export interface SampledPod extends Pick<PodUsage, 'usage' | 'processes' | 'network'> {
  readonly subject: PodSubject;
  readonly containers: readonly (ContainerSubject & { readonly usage: Usage })[];
}

/**
 * Reads the kernel's counters of the node and its pods. Passes are serialized, because a rate is
 * computed from two consecutive passes.
 */
export class KernelSampler implements Disposable {
  readonly #deps: KernelSamplerDeps;
  readonly #rates = new UsageRates();
  /**
   * CPU rates for passes that read only the node, separate from those of the other passes, because
   * the two kinds of passes run at different times.
   */
  readonly #nodeRates = new UsageRates();
  readonly #cgroups: ContainerCgroups;
  readonly #files: CgroupFileCache;
  readonly #looking = new KeyedMutex<'all'>();
  #idle: Timer | undefined;

  constructor(deps: KernelSamplerDeps) {
    this.#deps = deps;
    const { host, layout } = deps;
    this.#cgroups = new ContainerCgroups(host, layout);
    this.#files = new CgroupFileCache(host, layout);
  }

  /** Closes all open kernel files. */
  [Symbol.dispose](): void {
    this.#idle?.cancel();
    this.#files.close();
  }

  async sample(pods: readonly PodSubject[], scope: StatsScope, signal: AbortSignal): Promise<KernelSample> {
    using _alone = await this.#looking.acquire('all', signal);
    const pass = this.#rates.begin();
    const paths = await this.#cgroups.find(pods);
    try {
      const samplePass = new SamplePass(this.#deps, this.#files, pass, this.#memory(), paths);
      const sample = await samplePass.samplePods(pods, scope, signal);
      pass.end();
      this.#files.sweep();
      this.#idle?.cancel();
      this.#idle = this.#deps.clock.timer(openForMs, () => this.#files.close());
      return sample;
    } catch (error) {
      // Files are closed after an error, because they may be stale.
      this.#files.close();
      throw error;
    }
  }

  /** Reads the stats of the node without pods: about twenty files. */
  async node(): Promise<NodeSample> {
    const pass = this.#nodeRates.begin();
    const { host, layout } = this.#deps;
    const files = new CgroupFileCache({ readSync: (path) => host.readSync(path) }, layout);
    const sample = await new SamplePass(this.#deps, files, pass, this.#memory(), new Map()).sampleNode();
    pass.end();
    return sample;
  }

  #memory(): HostMemory {
    return hostMemory(this.#deps.host.readSync('/proc/meminfo') ?? '');
  }
}

class SamplePass {
  readonly #deps: KernelSamplerDeps;
  readonly #files: CgroupFileCache;
  readonly #rates: RatesPass;
  readonly #memory: HostMemory;
  readonly #paths: ReadonlyMap<string, string>;
  readonly #turns: Yielder;
  readonly #scope: UsageScope;
  #runtimeStats: ReadonlyMap<string, RuntimeContainerStats> | undefined;
  #isFirstOfSome = false;

  constructor(
    deps: KernelSamplerDeps,
    files: CgroupFileCache,
    rates: RatesPass,
    memory: HostMemory,
    paths: ReadonlyMap<string, string>,
  ) {
    this.#deps = deps;
    this.#files = files;
    this.#rates = rates;
    this.#memory = memory;
    this.#paths = paths;
    this.#turns = new Yielder(deps.clock);
    this.#scope = { swap: memory.swapTotalBytes > 0 ? 'some' : 'none', pressure: 'collected' };
  }

  async samplePods(
    pods: readonly PodSubject[],
    scope: StatsScope,
    signal: AbortSignal,
  ): Promise<KernelSample> {
    const sampled: SampledPod[] = [];
    for (const subject of pods) {
      const usage = this.#pod(subject) ?? (await this.#podFromRuntime(subject, signal));
      sampled.push(scope === 'all' ? { ...usage, ...this.#inside(subject) } : usage);
      if (subject.sandbox !== undefined) this.#files.retainNetworkOf(subject.sandbox.id);
      if (this.#turns.isDue) await this.#turns.yield();
    }
    return { ...(await this.sampleNode()), pods: sampled, isFirstOfSome: this.#isFirstOfSome };
  }

  async sampleNode(): Promise<NodeSample> {
    const stat = this.#read('/proc/stat') ?? '';
    const { totalBytes, availableBytes } = this.#memory;
    return {
      startTime: apiTime(Number(/^btime (\d+)/m.exec(stat)?.[1] ?? 0) * 1_000),
      usage: this.#node(),
      machineMemory: totalBytes > 0 ? { totalBytes, availableBytes } : undefined,
      system: await this.#system(),
      network: this.#nodeNetwork(),
      processes: this.#processes(),
    };
  }

  #node(): Usage {
    const { usage, totalBytes, swapUsageBytes, swapTotalBytes } = this.#memory;
    const root = this.#cgroup('/', '/');
    const used = root.memory ?? usage;
    return {
      ...this.#usage('node', root),
      memory: { ...used, availableBytes: Math.max(totalBytes - used.workingSetBytes, 0) },
      swapBytes: swapUsageBytes,
      swapAvailableBytes: swapTotalBytes - swapUsageBytes,
      pressure: this.#hostPressure(root.pressure),
    };
  }

  /** Pressure of the machine, read from /proc/pressure when the root cgroup does not report it. */
  #hostPressure(own: CgroupPressure | undefined): CgroupPressure {
    const of = (what: keyof CgroupPressure) =>
      own?.[what] ?? pressureIn(this.#read(`/proc/pressure/${what}`));
    return { cpu: of('cpu'), memory: of('memory'), io: of('io') };
  }

  async #system(): Promise<readonly ContainerUsage[]> {
    const { systemCgroups, machine, runtimeSocket } = this.#deps;
    const runtime = runtimeSocket === undefined ? undefined : await machine.runtimeAt?.(runtimeSocket);
    const parts = Object.entries(systemCgroups).map(([name, cgroup]) => [name, { cgroup }] as const);
    const found = new Map<string, SystemPart>([
      ['kubelet', { process: machine.self() }],
      ...(runtime === undefined ? [] : [['runtime', runtime] as const]),
      ...parts,
    ]);
    const all: ContainerUsage[] = [];
    for (const [name, part] of found) {
      const usage = this.#usage(
        `system/${name}`,
        'cgroup' in part ? this.#cgroup(name, part.cgroup) : usageOf(part.process),
      );
      // System containers whose cgroup does not exist are omitted.
      if (usage.cpuNanos === undefined && usage.memory === undefined) continue;
      all.push({ name, startTime: this.#startOf(name, part), usage });
    }
    return all;
  }

  #startOf(name: string, part: SystemPart): string | undefined {
    if ('process' in part) return apiTime(part.process.startMs);
    return name === 'kubelet' ? apiTime(this.#deps.machine.self().startMs) : undefined;
  }

  /** Stats of a pod from its cgroups; undefined when the runtime's stats are needed. */
  #pod(subject: PodSubject): SampledPod | undefined {
    const { uid, cgroup } = subject;
    const own = cgroup === '' ? undefined : this.#cgroup(uid, cgroup);
    const containers: SampledPod['containers'][number][] = [];
    for (const each of subject.containers) {
      const usage = this.#container(each.id) ?? this.#runtimeUsageOf(each.id);
      if (usage === undefined) return undefined;
      containers.push({ ...each, usage });
    }
    return {
      subject,
      containers,
      usage: own?.memory === undefined ? together(containers) : this.#usage(uid, own),
      processes: undefined,
    };
  }

  async #podFromRuntime(subject: PodSubject, signal: AbortSignal): Promise<SampledPod> {
    this.#runtimeStats = await this.#deps.runtimeStats(signal);
    const pod = this.#pod(subject);
    if (pod === undefined) throw new Error(`No usage is reported for the pod ${subject.name}`);
    return pod;
  }

  /** Returns process counts and network usage of the pod. */
  #inside({ sandbox, containers, network }: PodSubject): Pick<SampledPod, 'processes' | 'network'> {
    const own = sandbox && (this.#files.onlyProcessOf(sandbox.id) ?? this.#processesOf(sandbox.id));
    let [processes, first] = [own?.count, own?.first];
    for (const { id } of containers) {
      const more = this.#processesOf(id);
      if (more === undefined) continue;
      processes = (processes ?? 0) + more.count;
      first ??= more.first;
    }
    if (network === 'node' || first === undefined) return { processes };
    // The first process of the sandbox is enough, because all processes of a pod share its network
    // namespace.
    const dev =
      sandbox === undefined || own?.first === undefined
        ? this.#read(`/proc/${first}/net/dev`)
        : this.#files.networkOf(sandbox.id, own.first, own.count);
    return { processes, network: dev === undefined ? undefined : this.#networkIn(dev, 'eth0') };
  }

  /** Usage of a container from its cgroup; undefined when the cgroup is not found. */
  #container(id: string): Usage | undefined {
    const path = this.#paths.get(id);
    const usage = path === undefined ? undefined : this.#cgroup(id, path);
    return usage?.memory === undefined ? undefined : this.#usage(id, usage);
  }

  /** Usage of a container from the runtime's stats; undefined before they were requested. */
  #runtimeUsageOf(id: string): Usage | undefined {
    if (this.#runtimeStats === undefined) return undefined;
    const stats = this.#runtimeStats.get(id);
    if (stats === undefined) return this.#usage(id, nothing);
    const { atMs, cpuNanos, memory, swapBytes, swapAvailableBytes } = stats;
    const nanoCores = stats.nanoCores ?? this.#rate(id, atMs, cpuNanos);
    return { atMs, cpuNanos, nanoCores, memory, swapBytes, swapAvailableBytes };
  }

  #cgroup(key: string, path: string): CgroupUsage {
    return readCgroupUsage(this.#files.of(key, path), this.#scope);
  }

  #usage(key: string, { cpuNanos, ...rest }: CgroupUsage): Usage {
    const atMs = this.#deps.clock.now();
    return { atMs, cpuNanos, nanoCores: this.#rate(key, atMs, cpuNanos), ...rest };
  }

  #rate(key: string, atMs: number, cpuNanos: number | undefined): number | undefined {
    const rate = this.#rates.record(key, atMs, cpuNanos);
    if (rate === undefined && cpuNanos !== undefined) this.#isFirstOfSome = true;
    return rate;
  }

  /** Processes of a container; undefined when unknown. */
  #processesOf(id: string): ProcessesFound | undefined {
    const path = this.#paths.get(id);
    if (path === undefined) return undefined;
    const text = this.#files.of(id, path).memory.read('cgroup.procs');
    return text === undefined ? undefined : processesIn(text);
  }

  #nodeNetwork(): NetworkUsage | undefined {
    const dev = this.#read('/proc/self/net/dev');
    if (dev === undefined) return undefined;
    return this.#networkIn(dev, defaultInterface(this.#read('/proc/self/net/route') ?? ''));
  }

  #networkIn(dev: string, main: string | undefined): NetworkUsage {
    return { atMs: this.#deps.clock.now(), main, interfaces: interfacesIn(dev, main) };
  }

  /** Counts the threads of the machine, because each uses a PID. */
  #processes(): NodeUsage['processes'] {
    const current = / \d+\/(\d+)/.exec(this.#read('/proc/loadavg') ?? '')?.[1];
    const most = ['pid_max', 'threads-max'].map((name) => this.#read(`/proc/sys/kernel/${name}`));
    const max = Math.min(...most.filter((text) => text !== undefined).map(Number));
    return current === undefined || !Number.isFinite(max)
      ? undefined
      : { atMs: this.#deps.clock.now(), max, current: Number(current) };
  }

  #read(path: string): string | undefined {
    return this.#deps.host.readSync(path);
  }
}

/**
 * Parses a list of PIDs. The kernel shows a process in another PID namespace as 0, which is
 * skipped.
 */
function processesIn(text: string): ProcessesFound {
  const pids = text.split('\n').filter((pid) => pid !== '' && pid !== '0');
  return { count: pids.length, first: pids[0] };
}

/** Usage of a single process, for a system container without a cgroup. */
function usageOf({ cpuNanos, rssBytes, pageFaults, majorPageFaults }: ProcessUsage): CgroupUsage {
  const memory = { usageBytes: rssBytes, workingSetBytes: rssBytes, rssBytes, pageFaults, majorPageFaults };
  return { cpuNanos, memory: { ...memory, availableBytes: undefined }, swapBytes: undefined };
}

const nothing: CgroupUsage = { cpuNanos: undefined, memory: undefined, swapBytes: undefined };

/** Usage of a pod without a cgroup: the sum over its containers. */
function together(containers: readonly { readonly usage: Usage }[]): Usage {
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
