import { defaultPeriodUs, perSecondUs, sharesToWeight } from '../../lib/index.ts';
import type { DbusValue } from '../../protocols/dbus/index.ts';
import type { Slice } from '../cgroups/cgroup-manager.ts';
import type { CgroupValues } from '../cgroups/cgroup-values.ts';
import { parseCpuSet } from '../cpu/cpu-set.ts';

/** Of a unit, as calls have it: its name, and its value with the type that systemd insists on. */
export type UnitProperty = readonly [string, { readonly signature: string; readonly value: DbusValue }];

const infinity = 2n ** 64n - 1n;
/** Versions of systemd from which a property is known; to others it would be an error. */
const periodsFrom = 242;
const cpusetsFrom = 244;

const flag = (name: string, value: boolean): UnitProperty => [name, { signature: 'b', value }];
const count = (name: string, value: bigint): UnitProperty => [name, { signature: 't', value }];

/**
 * What a new slice has. Everything is counted from the start, as the kernel does not count for a cgroup what began before.
 * Without the usual dependencies, so that the slice outlives the beginning of a shutdown as pods do.
 */
export function startProperties({ unit, parent, version }: Slice): readonly UnitProperty[] {
  return [
    ['Description', { signature: 's', value: `kubelet cgroup ${unit}` }],
    ['Wants', { signature: 'as', value: [parent] }],
    flag('MemoryAccounting', true),
    flag('CPUAccounting', true),
    flag(version === 2 ? 'IOAccounting' : 'BlockIOAccounting', true),
    flag('TasksAccounting', true),
    flag('DefaultDependencies', false),
  ];
}

/** What of the values systemd knows; the rest is only in the files of the cgroup. */
export function valueProperties(
  values: CgroupValues,
  version: 1 | 2,
  systemdVersion: number,
): readonly UnitProperty[] {
  const { pidsLimit } = values;
  return [
    ...(version === 2 ? propertiesV2(values, systemdVersion) : propertiesV1(values)),
    ...quotaProperties(values, systemdVersion),
    // It takes no 0; and nothing runs in the slice itself.
    ...(pidsLimit === undefined ? [] : [count('TasksMax', orInfinity(pidsLimit === 0 ? 1 : pidsLimit))]),
  ];
}

function propertiesV1({ memoryBytes, cpuShares }: CgroupValues): readonly UnitProperty[] {
  return [...limit('MemoryLimit', memoryBytes), ...limit('CPUShares', cpuShares)];
}

function propertiesV2(values: CgroupValues, systemdVersion: number): readonly UnitProperty[] {
  const { memoryBytes, swapBytes, cpuShares, cpus } = values;
  return [
    ...limit('MemoryMax', memoryBytes),
    ...(swapBytes === undefined ? [] : [count('MemorySwapMax', orInfinity(swapBytes))]),
    ...limit('CPUWeight', cpuShares === undefined ? undefined : sharesToWeight(cpuShares)),
    ...(cpus === undefined || cpus === '' || systemdVersion < cpusetsFrom
      ? []
      : [['AllowedCPUs', { signature: 'ay', value: cpuBits(cpus) }] satisfies UnitProperty]),
  ];
}

function quotaProperties(
  { cpuQuotaUs, cpuPeriodUs }: CgroupValues,
  systemdVersion: number,
): readonly UnitProperty[] {
  if (cpuQuotaUs === undefined && cpuPeriodUs === undefined) return [];
  const perSecond =
    cpuQuotaUs === undefined || cpuQuotaUs <= 0
      ? infinity
      : BigInt(perSecondUs(cpuQuotaUs, cpuPeriodUs ?? defaultPeriodUs));
  return [
    ...(cpuPeriodUs === undefined || systemdVersion < periodsFrom
      ? []
      : [count('CPUQuotaPeriodUSec', BigInt(cpuPeriodUs))]),
    count('CPUQuotaPerSecUSec', perSecond),
  ];
}

/** Zero means that nothing was said. */
function limit(name: string, value: number | undefined): readonly UnitProperty[] {
  return value === undefined || value === 0 ? [] : [count(name, orInfinity(value))];
}

function orInfinity(value: number): bigint {
  return value < 0 ? infinity : BigInt(value);
}

/** One bit for each processor, the lowest first; as long as the last one needs. */
export function cpuBits(list: string): readonly number[] {
  const cpus = parseCpuSet(list);
  const bytes = new Array<number>(Math.floor(Math.max(...cpus) / 8) + 1).fill(0);
  for (const cpu of cpus) bytes[cpu >> 3] = (bytes[cpu >> 3] ?? 0) | (1 << (cpu & 7));
  return bytes;
}
