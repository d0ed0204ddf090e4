import { join } from 'node:path';
import type { CgroupHost, CgroupLayout } from '../../lib/index.ts';

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

/** What the processes of a cgroup, and of all below it, have used; each part is left out where the kernel does not tell. */
export interface CgroupUsage {
  readonly cpuNanos: number | undefined;
  readonly memory: MemoryUsage | undefined;
  readonly swapBytes: number | undefined;
  readonly processes: number | undefined;
}

type Read = Pick<CgroupHost, 'read'>;

/** Limits from here on are none: the kernel rounds "no limit" to whole pages of 64 bits. */
const noLimit = 2 ** 62;

/** Of a path below each tree of cgroups. */
export async function readCgroupUsage(layout: CgroupLayout, path: string, host: Read): Promise<CgroupUsage> {
  return layout.version === 2
    ? await unifiedUsage(join(layout.root, path), host)
    : await splitUsage(layout.controllers, path, host);
}

async function unifiedUsage(dir: string, host: Read): Promise<CgroupUsage> {
  const file = (name: string) => textOf(host, join(dir, name));
  const [cpu, current, stat, max, swap, pids] = await Promise.all(
    ['cpu.stat', 'memory.current', 'memory.stat', 'memory.max', 'memory.swap.current', 'pids.current'].map(
      file,
    ),
  );
  const counted = fieldsOf(stat);
  const microseconds = fieldsOf(cpu).get('usage_usec');
  return {
    cpuNanos: microseconds === undefined ? undefined : microseconds * 1_000,
    memory: memoryOf(numberOf(current), numberOf(max), {
      inactive: counted.get('inactive_file'),
      rss: counted.get('anon'),
      faults: counted.get('pgfault'),
      majorFaults: counted.get('pgmajfault'),
    }),
    swapBytes: numberOf(swap),
    processes: numberOf(pids),
  };
}

async function splitUsage(
  controllers: ReadonlyMap<string, string>,
  path: string,
  host: Read,
): Promise<CgroupUsage> {
  const file = async (controller: string, name: string) => {
    const root = controllers.get(controller);
    return root === undefined ? undefined : await textOf(host, join(root, path, name));
  };
  const [cpu, usage, stat, limit, pids] = await Promise.all([
    file('cpuacct', 'cpuacct.usage'),
    file('memory', 'memory.usage_in_bytes'),
    file('memory', 'memory.stat'),
    file('memory', 'memory.limit_in_bytes'),
    file('pids', 'pids.current'),
  ]);
  const counted = fieldsOf(stat);
  return {
    cpuNanos: numberOf(cpu),
    memory: memoryOf(numberOf(usage), numberOf(limit), {
      inactive: counted.get('total_inactive_file'),
      rss: counted.get('total_rss'),
      faults: counted.get('total_pgfault'),
      majorFaults: counted.get('total_pgmajfault'),
    }),
    swapBytes: counted.get('total_swap'),
    processes: numberOf(pids),
  };
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
  return await host.read(path).catch(() => undefined);
}

function numberOf(text: string | undefined): number | undefined {
  const word = text?.trim() ?? '';
  return /^\d+$/.test(word) ? Number(word) : undefined;
}

/** Lines of a name and a number. */
export function fieldsOf(text = ''): ReadonlyMap<string, number> {
  const rows = [...text.matchAll(/^([\w().]+):?\s+(\d+)/gm)];
  return new Map(rows.map(([, name = '', value]) => [name, Number(value)]));
}
