import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { walkTree } from '../../src/lib/disk-walk/walk.ts';
import { realClock } from '../../src/lib/index.ts';
import { hostSubPaths } from '../../src/runtime/index.ts';
import { HostVolumeFiles } from '../../src/volumes/index.ts';
import { walkForGroup } from '../../src/volumes/ownership/group-walk.ts';
import type { Arena, Attack, AttackedPath } from './attacked-path.ts';
import { recreateTree } from './recreate-tree.ts';

const changedBy = 'every container with the volume';
const group = 4_242;
/** A path with more components than the limit of open file descriptors. */
const deep = 'x/'.repeat(40);

/**
 * A volume with a directory that is repeatedly swapped with a link to the canary's directory, near
 * the top of the volume or deep inside it.
 */
function volumeOf({ root, canary }: Arena, at = '') {
  const volume = join(root, 'volume');
  const directory = join(volume, at, 'd');
  const link = join(root, 'link');
  mkdirSync(directory, { recursive: true });
  for (const name of ['secret', 'file']) writeFileSync(join(directory, name), 'own\n');
  symlinkSync(canary.directory, link);
  return { volume, swaps: [[directory, link]] as const };
}

function givingTo(at: string): (arena: Arena) => Attack {
  return (arena) => {
    const { volume, swaps } = volumeOf(arena, at);
    return {
      swaps,
      async act() {
        // The walk changes only files with a wrong group, so alternating between two groups forces
        // a change in every round.
        await walkForGroup(volume, { group, bits: 0o660 });
        await walkForGroup(volume, { group: 0, bits: 0o660 });
        return '';
      },
    };
  };
}

function removing(at: string): (arena: Arena) => Attack {
  return (arena) => {
    const tree = join(arena.root, 'volume');
    const [directory, link] = [join(tree, at, 'd'), join(arena.root, 'link')];
    const renew = () => recreateTree({ tree, at: directory, link, target: arena.canary.directory });
    const files = new HostVolumeFiles(realClock());
    renew();
    return {
      swaps: [[directory, link]],
      async act() {
        renew();
        await files.removeTree(tree);
        return '';
      },
    };
  };
}

const reading: AttackedPath = {
  place: 'file of a volume that variables are read from',
  changedBy,
  protectedBy: 'each component is opened from the handle of its parent, without links',
  attack(arena): Attack {
    const { volume, swaps } = volumeOf(arena);
    const parts = hostSubPaths(realClock());
    return { swaps, act: () => parts.readText(volume, 'd/secret', 1_000) };
  },
};

const counting: AttackedPath = {
  place: 'emptyDir, its size counted',
  changedBy,
  protectedBy: 'each component is opened from the handle of its parent, without links; nothing is read',
  attack(arena): Attack {
    const { volume, swaps } = volumeOf(arena);
    const around = { mountPoints: () => [], rest: async () => 'continue' as const };
    return {
      swaps,
      async act() {
        const { inodesUsed } = await walkTree({ path: volume, parts: undefined }, around);
        // The walk reaches at most four inodes: the volume, the directory or the link, and two
        // files.
        if (inodesUsed > 4) throw new Error(`the walk reached ${inodesUsed} inodes`);
        return '';
      },
    };
  },
};

export const volumePaths: readonly AttackedPath[] = [
  reading,
  counting,
  {
    place: 'volume, given to the group of a pod',
    changedBy,
    protectedBy:
      'each component is opened from the handle of its parent, without links, and changed by its own',
    attack: givingTo(''),
  },
  {
    place: 'deep volume, given to the group of a pod',
    changedBy,
    protectedBy: 'as above; the parent reached on the way back must be the original one',
    attack: givingTo(deep),
  },
  {
    place: 'emptyDir, removed with its pod',
    changedBy,
    protectedBy: 'each component is opened from the handle of its parent, without links',
    attack: removing(''),
  },
  {
    place: 'deep emptyDir, removed with its pod',
    changedBy,
    protectedBy: 'as above',
    attack: removing(deep.repeat(2)),
  },
];
