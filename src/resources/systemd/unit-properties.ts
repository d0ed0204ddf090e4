import { defaultPeriodUs, perSecondUs, sharesToWeight } from '../../lib/index.ts';
import type { DbusValue } from '../../protocols/dbus/index.ts';
import type { Slice } from '../cgroups/cgroup-manager.ts';
import type { CgroupValues } from '../cgroups/cgroup-values.ts';
import { parseCpuSet } from '../cpu/cpu-set.ts';

/** A property of a systemd unit as D-Bus argument: its name and typed value. */
export type UnitProperty = readonly [string, { readonly signature: string; readonly value: DbusValue }];

const infinity = 2n ** 64n - 1n;
/** The systemd version that introduced each property; older versions reject the property. */
const periodsFrom = 242;
const cpusetsFrom = 244;

const flag = (name: string, value: boolean): UnitProperty => [name, { signature: 'b', value }];
const count = (name: string, value: bigint): UnitProperty => [name, { signature: 't', value }];

/**
 * Returns the properties of a new slice. All accounting is enabled from the start, because the
 * kernel does not account usage retroactively. Default dependencies are off, because systemd would
 * otherwise stop the slice and its pods at the start of a shutdown.
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

/**
 * Converts the cgroup values that systemd supports to unit properties; the other values are only
 * written to the cgroup files.
 */
export function valueProperties(
  values: CgroupValues,
  version: 1 | 2,
  systemdVersion: number,
): readonly UnitProperty[] {
  const { pidsLimit } = values;
  return [
    ...(version === 2 ? propertiesV2(values, systemdVersion) : propertiesV1(values)),
    ...quotaProperties(values, systemdVersion),
    // systemd rejects TasksMax=0. One task is equivalent, because no process runs in the slice
    // itself.
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

/** Returns the property with this limit; no property if the limit is undefined or zero. */
function limit(name: string, value: number | undefined): readonly UnitProperty[] {
  return value === undefined || value === 0 ? [] : [count(name, orInfinity(value))];
}

function orInfinity(value: number): bigint {
  return value < 0 ? infinity : BigInt(value);
}

/** Returns a bit mask with one bit per CPU, lowest CPU first, up to the last CPU. */
function cpuBits(list: string): readonly number[] {
  const cpus = parseCpuSet(list);
  const bytes = new Array<number>(Math.floor(Math.max(...cpus) / 8) + 1).fill(0);
  for (const cpu of cpus) bytes[cpu >> 3] = (bytes[cpu >> 3] ?? 0) | (1 << (cpu & 7));
  return bytes;
}
