import {
  type CgroupHost,
  type CgroupLayout,
  cgroupRoots,
  defaultPeriodUs,
  describeError,
  errnoOf,
  KubelingError,
  sharesToWeight,
} from '../../lib/index.ts';
import type { CgroupValues } from './cgroup-values.ts';

type LayoutV1 = Extract<CgroupLayout, { version: 1 }>;

/** The directory of one cgroup in each controller tree. */
export interface CgroupTarget {
  readonly host: CgroupHost;
  readonly layout: CgroupLayout;
  readonly path: string;
}

/** Sets all values of the cgroup, even if some fail; returns the failures. */
export async function writeValues(
  place: CgroupTarget,
  values: CgroupValues,
): Promise<readonly KubelingError[]> {
  const { layout } = place;
  const steps =
    layout.version === 2 ? stepsV2(place, layout.root, values) : stepsV1({ ...place, layout }, values);
  const failures: KubelingError[] = [];
  for (const step of steps) {
    try {
      await step();
    } catch (error) {
      failures.push(asUpdateError(error));
    }
  }
  return failures;
}

type Step = () => Promise<void>;

function stepsV1(place: CgroupTarget & { readonly layout: LayoutV1 }, values: CgroupValues): Step[] {
  const { host, layout, path } = place;
  const dirOf = (controller: string) => {
    const root = layout.controllers.get(controller);
    return root === undefined ? undefined : `${root}${path}`;
  };
  const [cpu, memory, pids, hugetlb] = ['cpu', 'memory', 'pids', 'hugetlb'].map(dirOf);
  return [
    ...(cpu === undefined ? [] : [() => writeShares(host, cpu, values), () => writeQuota(host, cpu, values)]),
    ...(memory === undefined ? [] : [() => writeMemoryV1(host, memory, values)]),
    ...(pids === undefined ? [] : [() => writePids(host, pids, values)]),
    // Without the hugetlb controller the machine cannot limit huge pages, so their limits are not
    // written.
    ...(hugetlb === undefined ? [] : [() => writeHugePages(host, hugetlb, 'limit_in_bytes', values)]),
  ];
}

function stepsV2({ host, path }: CgroupTarget, root: string, values: CgroupValues): Step[] {
  const dir = `${root}${path}`;
  const optional = values.hugePages === undefined ? [] : [() => writeHugePages(host, dir, 'max', values)];
  return [
    () => writeWeight(host, dir, values),
    () => writeCpuMax(host, dir, values),
    () => writeMemoryV2(host, dir, values),
    () => writePids(host, dir, values),
    () => writeCpus(host, dir, values),
    ...optional,
  ];
}

/** The kernel silently clamps CPU shares, so the stored value is read back. */
async function writeShares(host: CgroupHost, dir: string, { cpuShares }: CgroupValues): Promise<void> {
  if (cpuShares === undefined) return;
  const file = `${dir}/cpu.shares`;
  await host.write(file, String(cpuShares));
  const kept = Number(await host.read(file));
  if (kept === cpuShares) return;
  throw new KubelingError(
    'CGROUP_UPDATE',
    `Cannot set ${file} to ${cpuShares}: the kernel keeps it at ${kept}`,
  );
}

/** A shorter period may not fit the old quota, so the new quota is written first. */
async function writeQuota(host: CgroupHost, dir: string, values: CgroupValues): Promise<void> {
  const { cpuPeriodUs, cpuQuotaUs } = values;
  const writePeriod = () => host.write(`${dir}/cpu.cfs_period_us`, String(cpuPeriodUs));
  let periodLast = false;
  if (cpuPeriodUs !== undefined) {
    try {
      await writePeriod();
    } catch (error) {
      if (errnoOf(error) !== 'EINVAL' || cpuQuotaUs === undefined) throw error;
      periodLast = true;
    }
  }
  if (cpuQuotaUs !== undefined) await host.write(`${dir}/cpu.cfs_quota_us`, String(cpuQuotaUs));
  if (periodLast) await writePeriod();
}

/**
 * The memory limit cannot exceed the limit of memory plus swap, so the order of the writes depends
 * on the direction.
 */
async function writeMemoryV1(host: CgroupHost, dir: string, values: CgroupValues): Promise<void> {
  const { memoryBytes, swapBytes } = values;
  const memory = () => lowerMemory(host, dir, memoryBytes);
  const swap = () => writeIfThere(host, `${dir}/memory.memsw.limit_in_bytes`, swapBytes);
  const grows =
    memoryBytes !== undefined &&
    (memoryBytes === -1 || memoryBytes > Number(await host.read(`${dir}/memory.limit_in_bytes`)));
  for (const step of grows ? [swap, memory] : [memory, swap]) await step();
}

async function lowerMemory(host: CgroupHost, dir: string, bytes: number | undefined): Promise<void> {
  if (bytes === undefined || bytes === 0) return;
  const file = `${dir}/memory.limit_in_bytes`;
  try {
    await host.write(file, String(bytes));
  } catch (error) {
    if (errnoOf(error) !== 'EBUSY') throw error;
    const read = async (name: string) => (await host.read(`${dir}/${name}`)).trim();
    const [used, most] = [await read('memory.usage_in_bytes'), await read('memory.max_usage_in_bytes')];
    throw new KubelingError(
      'CGROUP_UPDATE',
      `Cannot set ${file} to ${bytes} as more is in use: ${used} bytes now, ${most} at most so far`,
      { cause: error },
    );
  }
}

async function writeIfThere(host: CgroupHost, file: string, value: number | undefined): Promise<void> {
  if (value === undefined) return;
  try {
    // Parsed as bigint, because numbers above 2^53 would lose digits.
    await host.write(file, String(BigInt(value)));
  } catch (error) {
    // Not all kernels can limit swap or every huge page size; a missing file is no failure.
    if (errnoOf(error) !== 'ENOENT') throw error;
  }
}

async function writeWeight(host: CgroupHost, dir: string, { cpuShares }: CgroupValues): Promise<void> {
  if (cpuShares !== undefined) await host.write(`${dir}/cpu.weight`, String(sharesToWeight(cpuShares)));
}

async function writeCpuMax(host: CgroupHost, dir: string, values: CgroupValues): Promise<void> {
  const { cpuQuotaUs, cpuPeriodUs } = values;
  if (cpuQuotaUs === undefined && cpuPeriodUs === undefined) return;
  await host.write(`${dir}/cpu.max`, `${orMax(cpuQuotaUs ?? -1)} ${cpuPeriodUs ?? defaultPeriodUs}`);
}

async function writeMemoryV2(host: CgroupHost, dir: string, values: CgroupValues): Promise<void> {
  const { memoryBytes, swapBytes } = values;
  if (swapBytes !== undefined) await host.write(`${dir}/memory.swap.max`, orMax(swapBytes));
  if (memoryBytes !== undefined && memoryBytes !== 0)
    await host.write(`${dir}/memory.max`, orMax(memoryBytes));
}

async function writePids(host: CgroupHost, dir: string, { pidsLimit }: CgroupValues): Promise<void> {
  if (pidsLimit !== undefined) await host.write(`${dir}/pids.max`, orMax(pidsLimit));
}

async function writeCpus(host: CgroupHost, dir: string, { cpus }: CgroupValues): Promise<void> {
  if (cpus !== undefined) await host.write(`${dir}/cpuset.cpus`, cpus);
}

async function writeHugePages(
  host: CgroupHost,
  dir: string,
  suffix: 'limit_in_bytes' | 'max',
  { hugePages }: CgroupValues,
): Promise<void> {
  for (const [size, bytes] of hugePages ?? []) {
    await writeIfThere(host, `${dir}/hugetlb.${size}.${suffix}`, bytes);
  }
}

function orMax(value: number): string {
  return value < 0 ? 'max' : String(value);
}

export function asUpdateError(error: unknown): KubelingError {
  if (error instanceof KubelingError) return error;
  return new KubelingError('CGROUP_UPDATE', `Cannot set a value of a cgroup: ${describeError(error)}`, {
    cause: error,
  });
}

/**
 * Creates the cgroup and its parents in every tree, but only if the root of the tree is mounted:
 * otherwise the tmpfs at that path would accept an ordinary directory that is no cgroup.
 */
export async function makeDirectories(place: CgroupTarget): Promise<void> {
  const { host, layout, path } = place;
  if (layout.version === 2) return await makeV2(host, layout.root, path);
  await Promise.all(cgroupRoots(layout).map((root) => makeBelow(host, root, path)));
  const cpuset = layout.controllers.get('cpuset');
  if (cpuset !== undefined) await inheritCpuset(host, cpuset, path);
}

/** Creates directories from the bottom up: usually only the last one is missing. */
async function makeBelow(host: CgroupHost, root: string, path: string): Promise<void> {
  try {
    await host.mkdir(`${root}${path}`);
  } catch (error) {
    if (errnoOf(error) === 'EEXIST') return;
    if (errnoOf(error) !== 'ENOENT' || parentOf(path) === '') throw error;
    await makeBelow(host, root, parentOf(path));
    await makeBelow(host, root, path);
  }
}

/** Copies the cpuset of the parent: a new cpuset is empty and rejects processes with ENOSPC. */
async function inheritCpuset(host: CgroupHost, root: string, path: string): Promise<void> {
  if (path === '') return;
  const dir = `${root}${path}`;
  const files = ['cpuset.cpus', 'cpuset.mems'];
  const own = await Promise.all(files.map((file) => host.read(`${dir}/${file}`)));
  const empty = files.filter((_, index) => own[index]?.trim() === '');
  if (empty.length === 0) return;
  await inheritCpuset(host, root, parentOf(path));
  for (const file of empty) {
    const above = (await host.read(`${root}${parentOf(path)}/${file}`)).trim();
    await host.write(`${dir}/${file}`, above);
  }
}

/**
 * Creates directories from the top down: each directory must delegate a controller before its child
 * directory has the controller.
 */
async function makeV2(host: CgroupHost, root: string, path: string): Promise<void> {
  const parts = path.split('/').filter((part) => part !== '');
  let dir = root;
  for (const part of parts) {
    await handOnControllers(host, dir);
    dir = `${dir}/${part}`;
    await host.mkdir(dir).catch((error: unknown) => {
      if (errnoOf(error) !== 'EEXIST') throw error;
    });
  }
}

async function handOnControllers(host: CgroupHost, dir: string): Promise<void> {
  const [there, handedOn] = await Promise.all([
    readWords(host, `${dir}/cgroup.controllers`),
    readWords(host, `${dir}/cgroup.subtree_control`),
  ]);
  const missing = there.filter((name) => !handedOn.includes(name));
  if (missing.length === 0) return;
  const file = `${dir}/cgroup.subtree_control`;
  try {
    await host.write(file, missing.map((name) => `+${name}`).join(' '));
  } catch {
    // A controller that cannot be delegated does not block the others; missing required ones are
    // detected later.
    for (const name of missing) await host.write(file, `+${name}`).catch(() => undefined);
  }
}

export async function readWords(host: CgroupHost, file: string): Promise<string[]> {
  return (await host.read(file)).split(/\s+/).filter((word) => word !== '');
}

/** Returns the path of the parent; empty for the root. */
function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf('/'));
}
