import { KubelingError } from '../../lib/index.ts';

/** A set of CPU numbers. */
export type CpuSet = ReadonlySet<number>;

export const noCpus: CpuSet = new Set();

/**
 * The highest possible CPU number, so that a malicious or damaged list cannot exhaust the memory.
 */
const mostCpus = 65_536;

/** Parses a list of CPUs in the kernel's format, such as 0-3,8. Throws CPU_SET_INVALID. */
export function parseCpuSet(list: string): CpuSet {
  const parts = list.trim() === '' ? [] : list.trim().split(',');
  return new Set(parts.flatMap((part) => range(part, list)));
}

function range(part: string, list: string): readonly number[] {
  const found = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(part);
  const [first, last] = [Number(found?.[1]), Number(found?.[2] ?? found?.[1])];
  if (found === null || last < first || last >= mostCpus)
    throw new KubelingError(
      'CPU_SET_INVALID',
      `Cannot read ${JSON.stringify(list)} as a list of CPUs such as 0-3,8`,
    );
  return Array.from({ length: last - first + 1 }, (_, offset) => first + offset);
}

export function sortedCpus(cpus: Iterable<number>): readonly number[] {
  return [...cpus].toSorted((one, other) => one - other);
}

/** Formats the set of CPUs in the kernel's format. */
export function formatCpuSet(cpus: CpuSet): string {
  const ranges: [number, number][] = [];
  for (const cpu of sortedCpus(cpus)) {
    const last = ranges.at(-1);
    if (last?.[1] === cpu - 1) last[1] = cpu;
    else ranges.push([cpu, cpu]);
  }
  return ranges.map(([first, last]) => (first === last ? `${first}` : `${first}-${last}`)).join(',');
}
