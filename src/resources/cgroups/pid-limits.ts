import type { CgroupLayout } from '../../lib/index.ts';
import { leastNumber, type MachineFiles, readPidCapacity } from '../machine/machine-facts.ts';

/** How process IDs are shared between the node and its pods where the configuration does not say. */
export interface PidLimits {
  /** Not available to pods, of all the kernel has: for the node, the runtime and root's shell. */
  readonly reserved: number;
  readonly perPod: number;
}

/** The default of common distributions; enough for large Java and database processes. */
const mostPerPod = 4_096;
const leastReserved = 1_024;

/** Undefined when the kernel does not publish how many process IDs there are. */
export async function readPidLimits(
  files: Pick<MachineFiles, 'read'>,
  layout: CgroupLayout,
): Promise<PidLimits | undefined> {
  const capacity = await readPidCapacity(files);
  if (capacity === undefined) return undefined;
  const root = layout.version === 2 ? layout.root : layout.controllers.get('pids');
  // Only where the node itself runs in a container does the root have a limit.
  const bound = root === undefined ? '' : await files.read(`${root}/pids.max`).catch(() => '');
  return pidLimits(capacity, leastNumber(String(capacity), bound));
}

/** A tenth of what is usable stays with the node, and one pod gets at most a quarter of the rest. */
export function pidLimits(capacity: number, usable: number = capacity): PidLimits {
  const reserve = Math.min(Math.max(leastReserved, Math.ceil(usable / 10)), Math.ceil(usable / 2));
  const forPods = usable - reserve;
  return {
    reserved: capacity - forPods,
    perPod: Math.max(1, Math.min(mostPerPod, Math.floor(forPods / 4))),
  };
}
