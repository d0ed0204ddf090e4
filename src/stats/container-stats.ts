import type { ContainerStats, CriClient } from '../cri/index.ts';

/** What the runtime says one container has used; numbers it does not tell are left out. */
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
  /** What is left of its limit; undefined where nobody says. */
  readonly swapAvailableBytes?: number | undefined;
  readonly layer:
    | { readonly atMs: number; readonly usedBytes: number; readonly inodesUsed: number }
    | undefined;
}

/**
 * Of every container of a pod that runs, the newest instance of each. Asked container by container: one sandbox whose
 * cgroup is gone makes some runtimes tell nothing of any sandbox.
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
      // Some runtimes say none is left where there is no limit.
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

/** Looks closer together than this say little about a rate: the last one known stays. */
const leastApartMs = 1_000;

/** How fast each of many counters grows, found by comparing one look at all of them with the one before. */
export class UsageRates {
  #samples: ReadonlyMap<string, CpuSample> = new Map();

  /** Several may be under way at once; what the last one to end has seen counts for the next. */
  begin(): RatesPass {
    const before = this.#samples;
    const seen = new Map<string, CpuSample>();
    return {
      record(key, atMs, cpuNanos) {
        if (cpuNanos === undefined) return undefined;
        const look = next(before.get(key), atMs, cpuNanos);
        seen.set(key, look);
        return look.rate;
      },
      end: () => {
        this.#samples = seen;
      },
    };
  }
}

/** One look at all counters. */
export interface RatesPass {
  /** Nanoseconds of CPU time a second; undefined at the first look, and for a counter that began anew. */
  record(key: string, atMs: number, cpuNanos: number | undefined): number | undefined;
  /** All there are have been noted: the others are forgotten. */
  end(): void;
}

function next(before: CpuSample | undefined, atMs: number, cpuNanos: number): CpuSample {
  if (before === undefined || cpuNanos < before.cpuNanos) return { atMs, cpuNanos, rate: undefined };
  const apartMs = atMs - before.atMs;
  // The clock was set back: what was known stands until it can be compared again.
  if (apartMs < 0) return { ...before, atMs, cpuNanos };
  if (apartMs < leastApartMs) return before;
  return { atMs, cpuNanos, rate: Math.round(((cpuNanos - before.cpuNanos) * 1_000) / apartMs) };
}
