import type { CgroupLayout } from '../../lib/index.ts';
import { hugePageSizeName } from '../../pods/index.ts';

/** How facts about the machine are read; both fail as those of `node:fs` do. */
export interface FactFiles {
  read(path: string): Promise<string>;
  list(directory: string): Promise<readonly string[]>;
}

/** What of the machine decides about resources. What cannot be read counts as not there. */
export interface MachineFacts {
  /** How many processes and threads there can be; undefined when the kernel does not tell. */
  readonly pids: number | undefined;
  /** Bytes set aside by size of page, as the files of cgroups spell it. */
  readonly hugePages: ReadonlyMap<string, number>;
  /** What the machine swaps to. */
  readonly swaps: readonly string[];
  readonly swapBytes: bigint;
  /** Whether the kernel limits swap by cgroup. */
  readonly swapController: 'present' | 'absent';
}

const pagesDir = '/sys/kernel/mm/hugepages';
const pageKind = /^hugepages-(\d+)kB$/;

export async function readMachineFacts(files: FactFiles, layout: CgroupLayout): Promise<MachineFacts> {
  const text = (path: string) => files.read(path).catch(() => '');
  const [pids, swaps, memory, kinds] = await Promise.all([
    readPidCapacity(files),
    text('/proc/swaps'),
    text('/proc/meminfo'),
    files.list(pagesDir).catch(() => []),
  ]);
  const pages = await Promise.all(
    kinds.toSorted().map(async (kind) => [kind, await text(`${pagesDir}/${kind}/nr_hugepages`)] as const),
  );
  return {
    pids,
    hugePages: new Map(pages.flatMap(([kind, count]) => pagesOf(kind, count))),
    swaps: swapNames(swaps),
    swapBytes: BigInt(/^SwapTotal:\s*(\d+) kB$/m.exec(memory)?.[1] ?? 0) * 1024n,
    swapController: await swapController(files, layout),
  };
}

/** How many processes and threads there can be; undefined when the kernel does not tell. */
export async function readPidCapacity({ read }: Pick<FactFiles, 'read'>): Promise<number | undefined> {
  const files = ['/proc/sys/kernel/pid_max', '/proc/sys/kernel/threads-max'];
  return leastNumber(...(await Promise.all(files.map((path) => read(path).catch(() => '')))));
}

/** The root of the second version has no such file, so our own cgroup has to tell. */
async function swapController(files: FactFiles, layout: CgroupLayout): Promise<'present' | 'absent'> {
  try {
    if (layout.version === 1) {
      await files.read(`${layout.controllers.get('memory')}/memory.memsw.limit_in_bytes`);
      return 'present';
    }
    const own = /^0::(.*)$/m.exec(await files.read('/proc/self/cgroup'))?.[1] ?? '/';
    await files.read(`${layout.root}${own === '/' ? '' : own}/memory.swap.max`);
    return 'present';
  } catch {
    return 'absent';
  }
}

/** Of the texts that are one. */
export function leastNumber(...texts: readonly string[]): number | undefined {
  const numbers = texts.map((text) => Number.parseInt(text, 10)).filter((number) => number > 0);
  return numbers.length === 0 ? undefined : Math.min(...numbers);
}

function pagesOf(kind: string, count: string): [string, number][] {
  const kb = pageKind.exec(kind)?.[1];
  if (kb === undefined) return [];
  const bytes = BigInt(kb) * 1024n;
  return [[hugePageSizeName(bytes), Number(bytes) * (Number.parseInt(count, 10) || 0)]];
}

/** The first line names the columns. Swap into memory that is itself compressed costs no disk, but is swap all the same. */
function swapNames(text: string): readonly string[] {
  return text
    .split('\n')
    .slice(1)
    .flatMap((line) => line.trim().split(/\s+/)[0] || []);
}
