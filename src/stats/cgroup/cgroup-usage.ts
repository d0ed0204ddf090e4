export interface MemoryUsage {
  readonly usageBytes: number;
  /** The working set: memory usage without inactive file pages. */
  readonly workingSetBytes: number;
  readonly rssBytes: number;
  readonly pageFaults: number;
  readonly majorPageFaults: number;
  /** Memory limit minus working set; undefined without a limit. */
  readonly availableBytes: number | undefined;
}

export interface CgroupPressure {
  readonly cpu: Pressure | undefined;
  readonly memory: Pressure | undefined;
  readonly io: Pressure | undefined;
}

/**
 * The usage of a cgroup including its children; values that the kernel does not report are
 * undefined.
 */
export interface CgroupUsage {
  readonly cpuNanos: number | undefined;
  readonly memory: MemoryUsage | undefined;
  readonly swapBytes: number | undefined;
  /** Swap limit minus swap usage; undefined without a limit. */
  readonly swapAvailableBytes?: number | undefined;
  /** Pressure stall information; only when requested, and only with cgroups v2. */
  readonly pressure?: CgroupPressure | undefined;
}

export interface UsageScope {
  /** Whether the machine has swap; without swap, swap files are not read. */
  readonly swap: 'some' | 'none';
  readonly pressure: 'collected' | 'skipped';
}

/** Reads the files of a kernel directory; a missing file gives undefined. */
export interface CgroupFileReader {
  read(name: string): string | undefined;
}

/**
 * Readers for the memory and CPU files of a cgroup, which may be removed at any time; with cgroups
 * v2 both readers are the same.
 */
export interface CgroupFiles {
  readonly version: 1 | 2;
  readonly memory: CgroupFileReader;
  readonly cpu: CgroupFileReader;
}

/**
 * Limits at or above this value mean no limit: with cgroups v1 the kernel reports the largest
 * multiple of the page size.
 */
const noLimit = 2 ** 62;
const everything: UsageScope = { swap: 'some', pressure: 'skipped' };

export function readCgroupUsage(files: CgroupFiles, scope: UsageScope = everything): CgroupUsage {
  return files.version === 2 ? unifiedUsage(files.memory, scope) : splitUsage(files.memory, files.cpu, scope);
}

const unified = {
  usage: field('usage_usec'),
  anon: field('anon'),
  file: field('file'),
  inactive: field('inactive_file'),
  faults: field('pgfault'),
  majorFaults: field('pgmajfault'),
};

function unifiedUsage(files: CgroupFileReader, scope: UsageScope): CgroupUsage {
  const cpu = files.read('cpu.stat');
  const stat = files.read('memory.stat') ?? '';
  const microseconds = cpu === undefined ? undefined : unified.usage(cpu);
  const anon = unified.anon(stat);
  const usage = numberIn(files.read('memory.current')) ?? rssAndCache(anon, stat);
  const memory = memoryOf(usage, numberIn(files.read('memory.max')), {
    inactive: unified.inactive(stat),
    rss: anon,
    faults: unified.faults(stat),
    majorFaults: unified.majorFaults(stat),
  });
  const isSwapped = scope.swap === 'some';
  const [swap, most] = isSwapped ? [files.read('memory.swap.current'), files.read('memory.swap.max')] : [];
  return {
    cpuNanos: microseconds === undefined ? undefined : microseconds * 1_000,
    memory,
    ...swapOf(memory, numberIn(swap), numberIn(most)),
    pressure: scope.pressure === 'collected' ? pressureOf(files) : undefined,
  };
}

/** Memory usage of the root cgroup, which has no memory.current: anonymous plus file memory. */
function rssAndCache(anon: number | undefined, stat: string): number | undefined {
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

function splitUsage(files: CgroupFileReader, cpu: CgroupFileReader, scope: UsageScope): CgroupUsage {
  const stat = files.read('memory.stat') ?? '';
  const limit = numberIn(files.read('memory.limit_in_bytes'));
  const memory = memoryOf(numberIn(files.read('memory.usage_in_bytes')), limit, {
    inactive: split.inactive(stat),
    rss: split.rss(stat),
    faults: split.faults(stat),
    majorFaults: split.majorFaults(stat),
  });
  // With cgroups v1 this limit applies to the sum of memory and swap.
  const both = scope.swap === 'some' ? numberIn(files.read('memory.memsw.limit_in_bytes')) : undefined;
  const swapMax = both === undefined || limit === undefined || both > noLimit ? undefined : both - limit;
  return {
    cpuNanos: numberIn(cpu.read('cpuacct.usage')),
    memory,
    ...swapOf(memory, split.swap(stat), swapMax),
  };
}

/** Returns swap usage; 0 without swap accounting. */
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

/** Total time in microseconds that tasks were stalled, and recent averages. */
export interface PressureStats {
  readonly total: number;
  readonly avg10: number;
  readonly avg60: number;
  readonly avg300: number;
}

/** Stall times of at least one task (`some`) and of all tasks concurrently (`full`). */
export interface Pressure {
  readonly some: PressureStats;
  readonly full: PressureStats;
}

const none: PressureStats = { total: 0, avg10: 0, avg60: 0, avg300: 0 };

/**
 * Parses a `.pressure` file of a cgroup or a file below /proc/pressure; undefined when it is empty.
 */
export function pressureIn(text: string | undefined): Pressure | undefined {
  if (text === undefined) return undefined;
  const some = averagesIn(text, someLine);
  return some === undefined ? undefined : { some, full: averagesIn(text, fullLine) ?? none };
}

const averages = 'avg10=(\\S+) avg60=(\\S+) avg300=(\\S+) total=(\\d+)';
const someLine = new RegExp(`^some ${averages}`, 'm');
const fullLine = new RegExp(`^full ${averages}`, 'm');

function averagesIn(text: string, kind: RegExp): PressureStats | undefined {
  const line = kind.exec(text);
  if (line === null) return undefined;
  const [, avg10, avg60, avg300, total] = line.map(Number);
  return { total: total ?? 0, avg10: avg10 ?? 0, avg60: avg60 ?? 0, avg300: avg300 ?? 0 };
}

const zero = 48;
/** Longer numbers may need rounding, which Number() does correctly. */
const plainDigits = 15;

/**
 * Returns a function that finds the number after the name at the start of a line, without splitting
 * the text into lines.
 */
export function field(name: string): (text: string) => number | undefined {
  const [first, later] = [`${name} `, `\n${name} `];
  return (text) => {
    if (text.startsWith(first)) return numberAt(text, first.length);
    const at = text.indexOf(later);
    return at < 0 ? undefined : numberAt(text, at + later.length);
  };
}

/** Parses a number; undefined for other text such as `max`. */
export function numberIn(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const end = text.endsWith('\n') ? text.length - 1 : text.length;
  return digitsEnd(text, 0) === end ? numberAt(text, 0) : undefined;
}

/** Parses the number at the position; undefined when there is none. */
export function numberAt(text: string, start: number): number | undefined {
  const end = digitsEnd(text, start);
  if (end === start) return undefined;
  if (end - start > plainDigits) return Number(text.slice(start, end));
  let value = 0;
  for (let at = start; at < end; at++) value = value * 10 + text.charCodeAt(at) - zero;
  return value;
}

/** Returns the position after the digits that start at the given position. */
export function digitsEnd(text: string, start: number): number {
  let at = start;
  for (let digit = text.charCodeAt(at) - zero; digit >= 0 && digit <= 9; digit = text.charCodeAt(at) - zero)
    at++;
  return at;
}

/** Parses lines that consist of a name and a number. */
export function fieldsOf(text = ''): ReadonlyMap<string, number> {
  const rows = [...text.matchAll(/^([\w().]+):?\s+(\d+)/gm)];
  return new Map(rows.map(([, name = '', value]) => [name, Number(value)]));
}
