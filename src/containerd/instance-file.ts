import { readJsonIfValid, writeJsonAtomic } from '../lib/index.ts';
import type { Snapshotter } from './config.ts';
import { isSubnet } from './subnet.ts';

/**
 * The subnet and the snapshotter chosen at the first start, and the boot ID of the machine when the
 * state was written.
 */
export interface Instance {
  readonly subnet: string;
  readonly snapshotter: Snapshotter;
  readonly bootId: string;
}

/** Reads the file. Damaged values are left out; the caller chooses them again. */
export async function readInstance(path: string): Promise<Partial<Instance>> {
  const found = await readJsonIfValid(path);
  if (typeof found !== 'object' || found === null) return {};
  const { subnet, snapshotter, bootId } = found as Record<string, unknown>;
  return {
    ...(isSubnet(subnet) ? { subnet } : {}),
    ...(snapshotter === 'overlayfs' || snapshotter === 'native' ? { snapshotter } : {}),
    ...(typeof bootId === 'string' ? { bootId } : {}),
  };
}

export async function writeInstance(path: string, instance: Instance): Promise<void> {
  await writeJsonAtomic(path, instance, { mode: 0o600 });
}
