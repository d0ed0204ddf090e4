import type {
  ContainerStats,
  ContainerStatsRequest,
  ContainerStatsResponse,
  CpuUsage,
  ListContainerStatsRequest,
  ListContainerStatsResponse,
  ListPodSandboxStatsRequest,
  ListPodSandboxStatsResponse,
  MemoryUsage,
  PodSandboxStats,
  PodSandboxStatsRequest,
  PodSandboxStatsResponse,
} from '../../src/cri/index.ts';
import type { MessageInit } from '../../src/protocols/protobuf/index.ts';
import type { SimulatorContext } from './context.ts';
import { fullId } from './listing.ts';
import { type ContainerRecord, type CpuSample, hasProcess, type SandboxRecord } from './records.ts';
import { failed, inContext } from './refusals.ts';
import { shuffled } from './shuffle.ts';
import { required } from './store.ts';

const defaultCores = 0.001;
const defaultMemoryBytes = 512 << 10;
/** The memory usage of a sandbox process. */
const sandboxMemoryBytes = 256 << 10;

interface Used {
  readonly cpuNs: bigint;
  readonly memoryBytes: number;
}

/** The CPU, memory and disk usage of containers and pods, which grow as their scripts define. */
export class Stats {
  readonly #context: SimulatorContext;
  readonly #imageFsPath: string;

  constructor(context: SimulatorContext, imageFsPath: string) {
    this.#context = context;
    this.#imageFsPath = imageFsPath;
  }

  container({ containerId }: ContainerStatsRequest): MessageInit<ContainerStatsResponse> {
    const record = required(this.#context.store.containers.find(containerId), 'failed to find container');
    if (!hasProcess(record)) throw failed('unexpected metrics response: []');
    return { stats: this.#containerStats(record) };
  }

  listContainers({ filter }: ListContainerStatsRequest): MessageInit<ListContainerStatsResponse> {
    const { store, rules, random } = this.#context;
    const id = fullId(store.containers.find(filter?.id ?? ''), filter?.id ?? '');
    const sandboxId = fullId(store.sandboxes.find(filter?.podSandboxId ?? ''), filter?.podSandboxId ?? '');
    const expected = store.containers
      .all()
      .filter((record) => id === '' || record.id === id)
      .filter((record) => sandboxId === '' || record.sandbox.id === sandboxId)
      .filter((record) => rules.labelsMatch(filter?.labelSelector ?? {}, record.config.labels));
    return { stats: shuffled(expected, random).map((record) => this.#containerStats(record)) };
  }

  sandbox({ podSandboxId }: PodSandboxStatsRequest): MessageInit<PodSandboxStatsResponse> {
    const found = this.#context.store.sandboxes.find(podSandboxId);
    const record = required(found, `an error occurred when trying to find sandbox ${podSandboxId}`);
    try {
      checkCgroup(record);
    } catch (error) {
      throw inContext(`failed getting metrics for sandbox ${podSandboxId}`, error);
    }
    try {
      return { stats: this.#sandboxStats(record) };
    } catch (error) {
      throw inContext(`failed to decode pod sandbox metrics ${podSandboxId}`, error);
    }
  }

  listSandboxes({ filter }: ListPodSandboxStatsRequest): MessageInit<ListPodSandboxStatsResponse> {
    const { store, rules, random } = this.#context;
    const id = fullId(store.sandboxes.find(filter?.id ?? ''), filter?.id ?? '');
    const expected = store.sandboxes
      .all()
      .filter((record) => record.state === 'ready')
      .filter((record) => id === '' || record.id === id)
      .filter((record) => rules.labelsMatch(filter?.labelSelector ?? {}, record.config.labels));
    return { stats: shuffled(expected, random).map((record) => this.#listedSandbox(record)) };
  }

  #listedSandbox(record: SandboxRecord): MessageInit<PodSandboxStats> {
    try {
      checkCgroup(record);
      return this.#sandboxStats(record);
    } catch (error) {
      throw inContext(`failed to obtain metrics for sandbox "${record.id}"`, error);
    }
  }

  #containerStats(record: ContainerRecord): MessageInit<ContainerStats> {
    const { nowNs } = this.#context;
    const { id, config, files } = record;
    const { metadata, labels, annotations } = config;
    const at = nowNs();
    const base = {
      attributes: { id, metadata, labels, annotations },
      writableLayer: {
        timestamp: at,
        fsId: { mountpoint: this.#imageFsPath },
        usedBytes: { value: BigInt(files.ownBytes) },
        inodesUsed: { value: BigInt(files.ownFiles) },
      },
    };
    if (!hasProcess(record)) return base;
    const used = this.#used(record);
    const cpu = this.#cpu(used.cpuNs, at, record.cpu);
    record.cpu = { atNs: at, usedNs: used.cpuNs };
    return { ...base, cpu, memory: memoryUsage(used.memoryBytes, at, record.resources.memoryLimitInBytes) };
  }

  #sandboxStats(record: SandboxRecord): MessageInit<PodSandboxStats> {
    const { store, nowNs } = this.#context;
    if (record.state !== 'ready') {
      throw failed(
        `failed to get pod sandbox stats since sandbox container "${record.id}" is not in ready state`,
      );
    }
    const { id, config } = record;
    const { metadata, labels, annotations } = config;
    const containers = store.containersOf(record);
    const running = containers.filter(hasProcess).map((container) => this.#used(container));
    const cpuNs = running.reduce((sum, used) => sum + used.cpuNs, 0n);
    const memoryBytes = running.reduce((sum, used) => sum + used.memoryBytes, sandboxMemoryBytes);
    const at = nowNs();
    const cpu = this.#cpu(cpuNs, at, record.cpu);
    record.cpu = { atNs: at, usedNs: cpuNs };
    return {
      attributes: { id, metadata, labels, annotations },
      linux: {
        cpu,
        memory: memoryUsage(memoryBytes, at, 0n),
        ...(record.network === 'own' ? { network: networkUsage } : {}),
        process: { timestamp: at, processCount: { value: BigInt(running.length) } },
        containers: containers.map((container) => this.#containerStats(container)),
      },
    };
  }

  #used({ process, launch, resources }: ContainerRecord): Used {
    const elapsedMs = this.#context.clock.monotonicMs() - (process?.startedMs ?? 0);
    const {
      cpuCores = defaultCores,
      memoryBytes = defaultMemoryBytes,
      memoryBytesPerSecond = 0,
    } = launch.usage;
    const limit =
      resources.memoryLimitInBytes === 0n ? Number.MAX_SAFE_INTEGER : Number(resources.memoryLimitInBytes);
    return {
      cpuNs: BigInt(Math.floor(elapsedMs * 1e6 * cpuCores)),
      memoryBytes: Math.min(limit, Math.floor(memoryBytes + (memoryBytesPerSecond * elapsedMs) / 1_000)),
    };
  }

  #cpu(usedNs: bigint, at: bigint, before: CpuSample | undefined): MessageInit<CpuUsage> {
    const usage = { timestamp: at, usageCoreNanoSeconds: { value: usedNs } };
    if (before === undefined && this.#context.flavour.firstCpuRate === 'none') return usage;
    return { ...usage, usageNanoCores: { value: rate(usedNs, at, before) } };
  }
}

function rate(usedNs: bigint, at: bigint, before: CpuSample | undefined): bigint {
  if (before === undefined || at <= before.atNs || usedNs < before.usedNs) return 0n;
  return ((usedNs - before.usedNs) * 1_000_000_000n) / (at - before.atNs);
}

function memoryUsage(bytes: number, at: bigint, limit: bigint): MessageInit<MemoryUsage> {
  const used = BigInt(bytes);
  return {
    timestamp: at,
    workingSetBytes: { value: used },
    availableBytes: { value: limit > used ? limit - used : 0n },
    usageBytes: { value: used },
    rssBytes: { value: used / 2n },
    pageFaults: { value: used / 4_096n },
    majorPageFaults: { value: 0n },
  };
}

const networkUsage = {
  defaultInterface: {
    name: 'eth0',
    rxBytes: { value: 0n },
    rxErrors: { value: 0n },
    txBytes: { value: 0n },
    txErrors: { value: 0n },
  },
};

function checkCgroup(record: SandboxRecord): void {
  if ((record.config.linux?.cgroupParent ?? '') !== '') return;
  throw failed(`failed to get cgroup metrics for sandbox ${record.id} because cgroupPath is empty`);
}
