import { readJsonIfValid, writeJsonAtomic } from '../lib/index.ts';
import type { Snapshotter } from './config.ts';
import { isSubnet } from './subnet.ts';

/** What was chosen when this data directory was first used, and stays; and the boot that its state belongs to. */
export interface Instance {
  readonly subnet: string;
  readonly snapshotter: Snapshotter;
  readonly bootId: string;
}

/** What is on disk, as far as it can be read: a damaged file is chosen anew, part by part. */
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
