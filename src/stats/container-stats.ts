import type { ContainerStats, CriClient } from '../cri/index.ts';

/** Usage of a container as reported by the runtime; missing values are undefined. */
export interface RuntimeContainerStats {
  readonly id: string;
  readonly name: string;
  readonly podUid: string;
  readonly podName: string;
  readonly podNamespace: string;
  readonly atMs: number;
  readonly cpuNanos: number | undefined;
  readonly nanoCores: number | undefined;
  readonly memory: {
    readonly usageBytes: number | undefined;
    readonly workingSetBytes: number | undefined;
    readonly rssBytes: number | undefined;
    readonly pageFaults: number | undefined;
    readonly majorPageFaults: number | undefined;
    readonly availableBytes: number | undefined;
  };
  readonly swapBytes: number | undefined;
  /** Swap limit minus swap usage; undefined when unknown. */
  readonly swapAvailableBytes?: number | undefined;
  readonly layer:
    | { readonly atMs: number; readonly usedBytes: number; readonly inodesUsed: number }
    | undefined;
}

/**
 * Queries stats of the newest running instance of each container. One request per container,
 * because some runtimes return no stats at all when the cgroup of one sandbox is missing.
 */
export async function listContainerStats(
  cri: Pick<CriClient, 'listContainerStats'>,
  signal: AbortSignal,
): Promise<readonly RuntimeContainerStats[]> {
  const { stats } = await cri.listContainerStats({}, signal);
  const newest = new Map<string, ContainerStats>();
  for (const each of stats) {
    const { labels = {}, metadata } = each.attributes ?? {};
    if (each.cpu === undefined || labels[uidLabel] === undefined) continue;
    const key = `${labels[uidLabel]}/${metadata?.name}`;
    const other = newest.get(key)?.attributes?.metadata?.attempt ?? -1;
    if ((metadata?.attempt ?? 0) > other) newest.set(key, each);
  }
  return [...newest.values()].map(statsOf);
}

const uidLabel = 'io.kubernetes.pod.uid';

function statsOf({ attributes, cpu, memory, swap, writableLayer }: ContainerStats): RuntimeContainerStats {
  const labels = attributes?.labels ?? {};
  return {
    id: attributes?.id ?? '',
    name: attributes?.metadata?.name ?? '',
    podUid: labels[uidLabel] ?? '',
    podName: labels['io.kubernetes.pod.name'] ?? '',
    podNamespace: labels['io.kubernetes.pod.namespace'] ?? '',
    atMs: msOf(cpu?.timestamp),
    cpuNanos: numberOf(cpu?.usageCoreNanoSeconds),
    nanoCores: numberOf(cpu?.usageNanoCores),
    memory: {
      usageBytes: numberOf(memory?.usageBytes),
      workingSetBytes: numberOf(memory?.workingSetBytes),
      rssBytes: numberOf(memory?.rssBytes),
      pageFaults: numberOf(memory?.pageFaults),
      majorPageFaults: numberOf(memory?.majorPageFaults),
      // Zero counts as unknown, because some runtimes report it for a container without a memory
      // limit.
      availableBytes: numberOf(memory?.availableBytes) || undefined,
    },
    swapBytes: numberOf(swap?.swapUsageBytes),
    swapAvailableBytes: numberOf(swap?.swapAvailableBytes),
    layer: writableLayer && {
      atMs: msOf(writableLayer.timestamp),
      usedBytes: numberOf(writableLayer.usedBytes) ?? 0,
      inodesUsed: numberOf(writableLayer.inodesUsed) ?? 0,
    },
  };
}

function numberOf(wrapped: { readonly value: bigint } | undefined): number | undefined {
  return wrapped === undefined ? undefined : Number(wrapped.value);
}

function msOf(nanos = 0n): number {
  return Number(nanos / 1_000_000n);
}

interface CpuSample {
  readonly atMs: number;
  readonly cpuNanos: number;
  readonly rate: number | undefined;
}

/**
 * Minimum interval of two samples; closer ones give no reliable rate, so the previous rate is kept.
 */
const leastApartMs = 1_000;

/** Computes the rates of many counters by comparing two passes. */
export class UsageRates {
  #samples: ReadonlyMap<string, CpuSample> = new Map();

  /**
   * Starts a pass. Several passes may run concurrently; the next pass is compared with the one that
   * ended last.
   */
  begin(): RatesPass {
    const before = this.#samples;
    const samples = new Map<string, CpuSample>();
    return {
      record(key, atMs, cpuNanos) {
        if (cpuNanos === undefined) return undefined;
        const sample = next(before.get(key), atMs, cpuNanos);
        samples.set(key, sample);
        return sample.rate;
      },
      end: () => {
        this.#samples = samples;
      },
    };
  }
}

/** One pass that records samples of all counters. */
export interface RatesPass {
  /**
   * Records a sample and returns the rate in nanoseconds of CPU time per second; undefined for the
   * first sample and after a counter reset.
   */
  record(key: string, atMs: number, cpuNanos: number | undefined): number | undefined;
  /** Ends the pass; drops counters that were not recorded in it. */
  end(): void;
}

function next(before: CpuSample | undefined, atMs: number, cpuNanos: number): CpuSample {
  if (before === undefined || cpuNanos < before.cpuNanos) return { atMs, cpuNanos, rate: undefined };
  const apartMs = atMs - before.atMs;
  // The clock was set back: the previous rate is kept until the next sample.
  if (apartMs < 0) return { ...before, atMs, cpuNanos };
  if (apartMs < leastApartMs) return before;
  return { atMs, cpuNanos, rate: Math.round(((cpuNanos - before.cpuNanos) * 1_000) / apartMs) };
}
