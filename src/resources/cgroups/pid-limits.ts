import type { CgroupLayout } from '../../lib/index.ts';
import { leastNumber, type MachineFiles, readPidCapacity } from '../machine/machine-facts.ts';

/** The default PID limits of node and pods. */
export interface PidLimits {
  /** The PIDs reserved for the node, the container runtime and login shells. */
  readonly reserved: number;
  readonly perPod: number;
}

/**
 * The highest default PID limit of a pod. It equals the default limit in common distributions, and
 * is sufficient for large Java and database processes.
 */
const mostPerPod = 4_096;
const leastReserved = 1_024;

/** Computes the default PID limits; undefined if the kernel does not publish the number of PIDs. */
export async function readPidLimits(
  files: Pick<MachineFiles, 'read'>,
  layout: CgroupLayout,
): Promise<PidLimits | undefined> {
  const capacity = await readPidCapacity(files);
  if (capacity === undefined) return undefined;
  const root = layout.version === 2 ? layout.root : layout.controllers.get('pids');
  // The root cgroup has a PID limit only if the node runs in a container.
  const bound = root === undefined ? '' : await files.read(`${root}/pids.max`).catch(() => '');
  return pidLimits(capacity, leastNumber(String(capacity), bound));
}

/** Reserves a tenth of the PIDs for the node; a pod may use a quarter of the rest. */
export function pidLimits(capacity: number, usable: number = capacity): PidLimits {
  const reserve = Math.min(Math.max(leastReserved, Math.ceil(usable / 10)), Math.ceil(usable / 2));
  const forPods = usable - reserve;
  return {
    reserved: capacity - forPods,
    perPod: Math.max(1, Math.min(mostPerPod, Math.floor(forPods / 4))),
  };
}
