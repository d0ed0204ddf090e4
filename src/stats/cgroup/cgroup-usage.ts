import { field, numberIn } from './text-fields.ts';

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

export interface UsageScope {
  /** Whether the machine has any: without, nobody uses some. */
  readonly swap: 'some' | 'none';
  readonly pressure: 'wanted' | 'unwanted';
}

/** The files of a directory of the kernel; each tells undefined where there is none. */
export interface CgroupFileReader {
  read(name: string): string | undefined;
}

/** The files of one cgroup, which may go at any moment; in the second version both are the same. */
export interface CgroupFiles {
  readonly version: 1 | 2;
  readonly memory: CgroupFileReader;
  readonly cpu: CgroupFileReader;
}

/** Limits from here on are none: the kernel rounds "no limit" to whole pages of 64 bits. */
const noLimit = 2 ** 62;
const everything: UsageScope = { swap: 'some', pressure: 'unwanted' };

export function readCgroupUsage(files: CgroupFiles, wish: UsageScope = everything): CgroupUsage {
  return files.version === 2 ? unifiedUsage(files.memory, wish) : splitUsage(files.memory, files.cpu, wish);
}

const unified = {
  usage: field('usage_usec'),
  anon: field('anon'),
  file: field('file'),
  inactive: field('inactive_file'),
  faults: field('pgfault'),
  majorFaults: field('pgmajfault'),
};

function unifiedUsage(files: CgroupFileReader, wish: UsageScope): CgroupUsage {
  const cpu = files.read('cpu.stat');
  const stat = files.read('memory.stat') ?? '';
  const microseconds = cpu === undefined ? undefined : unified.usage(cpu);
  const anon = unified.anon(stat);
  const usage = numberIn(files.read('memory.current')) ?? wholeOf(anon, stat);
  const memory = memoryOf(usage, numberIn(files.read('memory.max')), {
    inactive: unified.inactive(stat),
    rss: anon,
    faults: unified.faults(stat),
    majorFaults: unified.majorFaults(stat),
  });
  const isSwapped = wish.swap === 'some';
  const [swap, most] = isSwapped ? [files.read('memory.swap.current'), files.read('memory.swap.max')] : [];
  return {
    cpuNanos: microseconds === undefined ? undefined : microseconds * 1_000,
    memory,
    ...swapOf(memory, numberIn(swap), numberIn(most)),
    pressure: wish.pressure === 'wanted' ? pressureOf(files) : undefined,
  };
}

/** The root has no file of its own for it. */
function wholeOf(anon: number | undefined, stat: string): number | undefined {
  const files = unified.file(stat);
  return anon === undefined || files === undefined ? undefined : anon + files;
}

function pressureOf(files: CgroupFileReader): CgroupPressure {
  return {
    cpu: pressureIn(files.read('cpu.pressure')),
    memory: pressureIn(files.read('memory.pressure')),
    io: pressureIn(files.read('io.pressure')),
  };
}

const split = {
  inactive: field('total_inactive_file'),
  rss: field('total_rss'),
  faults: field('total_pgfault'),
  majorFaults: field('total_pgmajfault'),
  swap: field('total_swap'),
};

function splitUsage(files: CgroupFileReader, cpu: CgroupFileReader, wish: UsageScope): CgroupUsage {
  const stat = files.read('memory.stat') ?? '';
  const limit = numberIn(files.read('memory.limit_in_bytes'));
  const memory = memoryOf(numberIn(files.read('memory.usage_in_bytes')), limit, {
    inactive: split.inactive(stat),
    rss: split.rss(stat),
    faults: split.faults(stat),
    majorFaults: split.majorFaults(stat),
  });
  // Of memory and swap together.
  const both = wish.swap === 'some' ? numberIn(files.read('memory.memsw.limit_in_bytes')) : undefined;
  const swapMax = both === undefined || limit === undefined || both > noLimit ? undefined : both - limit;
  return {
    cpuNanos: numberIn(cpu.read('cpuacct.usage')),
    memory,
    ...swapOf(memory, split.swap(stat), swapMax),
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

/** How long tasks have waited for something, in microseconds, and in what share of the last while. */
export interface PressureStats {
  readonly total: number;
  readonly avg10: number;
  readonly avg60: number;
  readonly avg300: number;
}

/** Of some tasks, and of all of them at once. */
export interface Pressure {
  readonly some: PressureStats;
  readonly full: PressureStats;
}

const none: PressureStats = { total: 0, avg10: 0, avg60: 0, avg300: 0 };

/** From the text of a `.pressure` file or one below /proc/pressure; undefined when it says nothing. */
export function pressureIn(text: string | undefined): Pressure | undefined {
  if (text === undefined) return undefined;
  const some = figuresIn(text, someLine);
  return some === undefined ? undefined : { some, full: figuresIn(text, fullLine) ?? none };
}

const figures = 'avg10=(\\S+) avg60=(\\S+) avg300=(\\S+) total=(\\d+)';
const someLine = new RegExp(`^some ${figures}`, 'm');
const fullLine = new RegExp(`^full ${figures}`, 'm');

function figuresIn(text: string, kind: RegExp): PressureStats | undefined {
  const line = kind.exec(text);
  if (line === null) return undefined;
  const [, avg10, avg60, avg300, total] = line.map(Number);
  return { total: total ?? 0, avg10: avg10 ?? 0, avg60: avg60 ?? 0, avg300: avg300 ?? 0 };
}
