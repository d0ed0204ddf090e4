import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { errnoOf } from './cgroups/index.ts';

/** The loop devices whose content is what is at the path, which is as the kernel has it, without links. */
export async function loopDevicesOf(path: string, sysDir = '/sys'): Promise<readonly string[]> {
  const block = join(sysDir, 'block');
  const names = ((await readdir(block).catch(unlessMissing)) ?? []).filter((name) => name.startsWith('loop'));
  const found: string[] = [];
  for (const name of names) {
    const held = await readFile(join(block, name, 'loop/backing_file'), 'utf8').catch(unlessMissing);
    if (held?.trimEnd() === path) found.push(`/dev/${name}`);
  }
  return found;
}

/** A device may also go while it is looked at. */
function unlessMissing(error: unknown): undefined {
  if (!['ENOENT', 'ENXIO', 'ENODEV'].includes(errnoOf(error) ?? '')) throw error;
}
