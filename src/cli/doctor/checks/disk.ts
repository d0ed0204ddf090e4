import { dirname } from 'node:path';
import type { Machine, Space } from '../check.ts';
import { type Check, type Observation, ok } from '../check.ts';

const gib = 2 ** 30;

/** File system types that are unsuitable for container data, by magic number. */
const unsuitable: ReadonlyMap<number, string> = new Map([
  [0x794c7630, 'overlayfs, on which the runtime cannot mount another overlay'],
  [0x6969, 'NFS, which lacks features that image layers need'],
  [0x01021994, 'tmpfs, so images use memory and are lost at a reboot'],
]);

export const disk: Check = {
  name: 'disk',
  observe: async ({ machine, dataDirectory }) => {
    const data = await examineDisk(machine, dataDirectory);
    const logs = await examineDisk(machine, '/var/log');
    return [...data, ...logs];
  },
};

async function examineDisk(machine: Machine, path: string): Promise<readonly Observation[]> {
  const space = await machine.spaceAt(await nearestExisting(machine, path));
  const wrong = [...observeType(path, space), ...observeSpace(path, space)];
  return wrong.length > 0 ? wrong : [ok(`${path}: ${describe(space)}`)];
}

/**
 * Returns the closest existing parent of a path: a directory that does not exist yet will be on the
 * file system of that parent.
 */
async function nearestExisting(machine: Machine, path: string): Promise<string> {
  let at = path;
  while (at !== '/' && at !== '.' && (await machine.kindOf(at)) === undefined) at = dirname(at);
  return at;
}

function describe(space: Space): string {
  const inodes =
    space.totalInodes === 0 ? '' : `, ${percent(space.freeInodes, space.totalInodes)} of its inodes`;
  const free = `${(space.availableBytes / gib).toFixed(1)} GiB free`;
  return `${free} (${percent(space.availableBytes, space.totalBytes)}${inodes})`;
}

function percent(part: number, total: number): string {
  return `${total === 0 ? 0 : Math.floor((part / total) * 100)} %`;
}

function observeType(path: string, space: Space): readonly Observation[] {
  const why = unsuitable.get(space.type);
  if (why === undefined || path === '/var/log') return [];
  return [
    {
      severity: 'warn',
      finding: `${path} is on ${why}`,
      consequence: 'images are slow, large or lost',
      advice: 'choose a directory on ext4, xfs or btrfs with --data-dir',
    },
  ];
}

/**
 * Compares the free space with the thresholds at which the default configuration starts to evict
 * pods.
 */
function observeSpace(path: string, space: Space): readonly Observation[] {
  const fewBytes = space.availableBytes < Math.max(gib, space.totalBytes * 0.1);
  const fewInodes = space.totalInodes > 0 && space.freeInodes < space.totalInodes * 0.05;
  if (!fewBytes && !fewInodes) return [];
  return [
    {
      severity: 'warn',
      finding: `${path}: only ${describe(space)}`,
      consequence:
        'below 10 % of space or 5 % of inodes pods are evicted by default, and pulls fail soon after',
      advice: 'free some space, or use a larger disk',
    },
  ];
}
