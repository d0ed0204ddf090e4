import { join } from 'node:path';
import type { CgroupHost, CgroupLayout } from '../../lib/index.ts';
import { type Pressure, pressureIn } from './pressure.ts';
import { fieldIn, numberIn } from './text-fields.ts';

export interface MemoryUsage {
  readonly usageBytes: number;
  /** What cannot be given back at once: all but the pages of files nobody has touched for a while. */
  readonly workingSetBytes: number;
  readonly rssBytes: number;
  readonly pageFaults: number;
  readonly majorPageFaults: number;
  /** What is left of its limit; undefined without one. */
  readonly availableBytes: number | undefined;
}

export interface CgroupPressure {
  readonly cpu: Pressure | undefined;
  readonly memory: Pressure | undefined;
  readonly io: Pressure | undefined;
}

/** What the processes of a cgroup, and of all below it, have used; each part is left out where the kernel does not tell. */
export interface CgroupUsage {
  readonly cpuNanos: number | undefined;
  readonly memory: MemoryUsage | undefined;
  readonly swapBytes: number | undefined;
  /** What is left of its limit; undefined without one. */
  readonly swapAvailableBytes?: number | undefined;
  /** Only where asked for, and only in the second version. */
  readonly pressure?: CgroupPressure | undefined;
}

export interface UsageWish {
  /** Whether the machine has any: without, nobody uses some. */
  readonly swap: 'some' | 'none';
  readonly pressure: 'wanted' | 'unwanted';
}

type Read = Pick<CgroupHost, 'read'>;

/** Limits from here on are none: the kernel rounds "no limit" to whole pages of 64 bits. */
const noLimit = 2 ** 62;
const everything: UsageWish = { swap: 'some', pressure: 'unwanted' };

/** Of a path below each tree of cgroups. */
export async function readCgroupUsage(
  layout: CgroupLayout,
  path: string,
  host: Read,
  wish: UsageWish = everything,
): Promise<CgroupUsage> {
  return layout.version === 2
    ? await unifiedUsage(join(layout.root, path).replace(/\/$/, ''), host, wish)
    : await splitUsage(layout.controllers, path, host, wish);
}

async function unifiedUsage(dir: string, host: Read, wish: UsageWish): Promise<CgroupUsage> {
  const file = (name: string) => textOf(host, `${dir}/${name}`);
  const cpu = await file('cpu.stat');
  const stat = (await file('memory.stat')) ?? '';
  const [current, max] = [await file('memory.current'), await file('memory.max')];
  const microseconds = cpu === undefined ? undefined : fieldIn(cpu, 'usage_usec');
  const [anon, files] = [fieldIn(stat, 'anon'), fieldIn(stat, 'file')];
  // The root has no file of its own for it.
  const whole = anon === undefined || files === undefined ? undefined : anon + files;
  const memory = memoryOf(numberIn(current) ?? whole, numberIn(max), {
    inactive: fieldIn(stat, 'inactive_file'),
    rss: anon,
    faults: fieldIn(stat, 'pgfault'),
    majorFaults: fieldIn(stat, 'pgmajfault'),
  });
  const isSwapped = wish.swap === 'some';
  const [swap, swapMax] = isSwapped ? [await file('memory.swap.current'), await file('memory.swap.max')] : [];
  return {
    cpuNanos: microseconds === undefined ? undefined : microseconds * 1_000,
    memory,
    ...swapOf(memory, numberIn(swap), numberIn(swapMax)),
    pressure: wish.pressure === 'wanted' ? await pressureOf(file) : undefined,
  };
}

async function pressureOf(file: (name: string) => Promise<string | undefined>): Promise<CgroupPressure> {
  return {
    cpu: pressureIn(await file('cpu.pressure')),
    memory: pressureIn(await file('memory.pressure')),
    io: pressureIn(await file('io.pressure')),
  };
}

async function splitUsage(
  controllers: ReadonlyMap<string, string>,
  path: string,
  host: Read,
  wish: UsageWish,
): Promise<CgroupUsage> {
  const below = path === '/' ? '' : path;
  const file = async (controller: string, name: string) => {
    const root = controllers.get(controller);
    return root === undefined ? undefined : await textOf(host, `${root}${below}/${name}`);
  };
  const stat = (await file('memory', 'memory.stat')) ?? '';
  const limit = numberIn(await file('memory', 'memory.limit_in_bytes'));
  const memory = memoryOf(numberIn(await file('memory', 'memory.usage_in_bytes')), limit, {
    inactive: fieldIn(stat, 'total_inactive_file'),
    rss: fieldIn(stat, 'total_rss'),
    faults: fieldIn(stat, 'total_pgfault'),
    majorFaults: fieldIn(stat, 'total_pgmajfault'),
  });
  // Of memory and swap together.
  const both =
    wish.swap === 'some' ? numberIn(await file('memory', 'memory.memsw.limit_in_bytes')) : undefined;
  const swapMax = both === undefined || limit === undefined || both > noLimit ? undefined : both - limit;
  return {
    cpuNanos: numberIn(await file('cpuacct', 'cpuacct.usage')),
    memory,
    ...swapOf(memory, fieldIn(stat, 'total_swap'), swapMax),
  };
}

/** Where the kernel does not count it there is none to be used. */
function swapOf(memory: MemoryUsage | undefined, used: number | undefined, most: number | undefined) {
  const swapBytes = memory === undefined ? undefined : (used ?? 0);
  const isLimited = most !== undefined && most <= noLimit && swapBytes !== undefined;
  return { swapBytes, swapAvailableBytes: isLimited ? Math.max(most - swapBytes, 0) : undefined };
}

interface Counted {
  readonly inactive: number | undefined;
  readonly rss: number | undefined;
  readonly faults: number | undefined;
  readonly majorFaults: number | undefined;
}

function memoryOf(
  usage: number | undefined,
  limit: number | undefined,
  { inactive = 0, rss = 0, faults = 0, majorFaults = 0 }: Counted,
): MemoryUsage | undefined {
  if (usage === undefined) return undefined;
  const workingSetBytes = Math.max(usage - inactive, 0);
  return {
    usageBytes: usage,
    workingSetBytes,
    rssBytes: rss,
    pageFaults: faults,
    majorPageFaults: majorFaults,
    availableBytes: limit === undefined || limit > noLimit ? undefined : Math.max(limit - workingSetBytes, 0),
  };
}

/** A cgroup may go at any moment. */
async function textOf(host: Read, path: string): Promise<string | undefined> {
  try {
    return await host.read(path);
  } catch {
    return undefined;
  }
}
