import type { CgroupLayout } from '../../lib/index.ts';
import { KubelingError } from '../../lib/index.ts';
import { hugePageSizeName } from '../../pods/index.ts';

/** Reads files of the machine; both methods fail like the functions of `node:fs`. */
export interface MachineFiles {
  read(path: string): Promise<string>;
  list(directory: string): Promise<readonly string[]>;
}

/** The facts of the machine that affect resources. A fact that cannot be read counts as missing. */
export interface MachineFacts {
  /** The maximum number of PIDs; undefined if the kernel does not publish it. */
  readonly pids: number | undefined;
  /**
   * The bytes of huge pages by page size, which is spelled as in cgroup file names, such as 2MB.
   */
  readonly hugePages: ReadonlyMap<string, number>;
  /** The paths of the active swap devices and files. */
  readonly swaps: readonly string[];
  readonly swapBytes: bigint;
  /** Whether cgroups can limit swap. */
  readonly swapController: 'present' | 'absent';
}

const pagesDir = '/sys/kernel/mm/hugepages';
const pageKind = /^hugepages-(\d+)kB$/;

export async function readMachineFacts(files: MachineFiles, layout: CgroupLayout): Promise<MachineFacts> {
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

/** Returns the maximum number of PIDs; undefined if the kernel does not publish it. */
export async function readPidCapacity({ read }: Pick<MachineFiles, 'read'>): Promise<number | undefined> {
  const files = ['/proc/sys/kernel/pid_max', '/proc/sys/kernel/threads-max'];
  return leastNumber(...(await Promise.all(files.map((path) => read(path).catch(() => '')))));
}

/**
 * Whether cgroups can limit swap. With cgroups v2 the root cgroup has no file for the swap limit,
 * so the cgroup of this process is checked.
 */
async function swapController(files: MachineFiles, layout: CgroupLayout): Promise<'present' | 'absent'> {
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

/** Returns the number in the text; undefined if the text is not a number. */
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

/**
 * Reads /proc/swaps, whose first line is a heading. zram counts as swap, although it uses no disk.
 */
function swapNames(text: string): readonly string[] {
  return text
    .split('\n')
    .slice(1)
    .flatMap((line) => line.trim().split(/\s+/)[0] || []);
}

/** The configuration fields that set requirements for the machine. */
export interface MachineRequirements {
  readonly failSwapOn: boolean;
  readonly failCgroupV1: boolean;
  readonly swapBehavior: string;
  /**
   * Whether the OOM killer kills only one process of a container; if undefined, it kills one process
   * with cgroups v1 and all processes with cgroups v2.
   */
  readonly singleProcessOomKill: boolean | undefined;
}

/**
 * Checks the requirements of the configuration. Throws MACHINE_UNFIT with all requirements that the
 * machine does not meet.
 */
export function checkMachine(
  demands: MachineRequirements,
  { swaps }: Pick<MachineFacts, 'swaps'>,
  cgroups: 1 | 2,
): void {
  const problems = [
    demands.failSwapOn && swaps.length > 0
      ? `failSwapOn must be false on a machine that swaps: it swaps to ${swaps.join(', ')}; else run swapoff -a`
      : undefined,
    demands.failCgroupV1 && cgroups === 1
      ? 'failCgroupV1 must be false on a machine with cgroups v1; else boot it with cgroups v2'
      : undefined,
    demands.swapBehavior === 'LimitedSwap' && cgroups === 1
      ? 'memorySwap.swapBehavior must be NoSwap on a machine with cgroups v1: current value is LimitedSwap'
      : undefined,
    demands.singleProcessOomKill === false && cgroups === 1
      ? 'singleProcessOOMKill must be true or left out on a machine with cgroups v1: current value is false'
      : undefined,
  ].filter((problem) => problem !== undefined);
  if (problems.length === 0) return;
  throw new KubelingError('MACHINE_UNFIT', `Cannot run pods on this machine as ${problems.join('; and ')}`, {
    details: { problems },
  });
}
