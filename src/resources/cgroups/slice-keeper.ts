import type { CgroupValues } from './cgroup-values.ts';

/** What to do about a driver that leaves cgroups to a systemd that is not there. */
export const withoutSystemd =
  'where it does not run set cgroupDriver: cgroupfs, and SystemdCgroup = false in containerd\'s configuration, or cgroup_manager = "cgroupfs" in CRI-O\'s';

/** A cgroup as systemd has it: a unit, within that of the cgroup above. */
export interface Slice {
  readonly unit: string;
  readonly parent: string;
  /** Of the cgroups on this machine. */
  readonly version: 1 | 2;
}

/**
 * Systemd, where cgroups are its own to make: what is written behind its back lasts only until it looks. Each call may be
 * repeated, ends within a bounded time, and rejects with SYSTEMD_UNIT. Once disposed of it can be used again.
 */
export interface SliceKeeper extends Disposable {
  /** There already is done. */
  start(slice: Slice, signal: AbortSignal): Promise<void>;
  /** As far as systemd knows such values. */
  set(slice: Slice, values: CgroupValues, signal: AbortSignal): Promise<void>;
  /** Not there is done. */
  stop(slice: Slice, signal: AbortSignal): Promise<void>;
}
