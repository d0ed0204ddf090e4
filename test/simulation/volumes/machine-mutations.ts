import type { NodeMachine } from '../../../src/kubelet/index.ts';
import type { KnownBug } from '../mutations.ts';
import { withParts } from './joint-files.ts';
import { kindsOf, shownAt } from './pod-volumes.ts';
import { atTheEnd, mounting, starts, stays } from './volume-mutations.ts';

/** Bugs with local disks, block devices and network mounts; the simulation must find each. */
export const machineMutations: Readonly<Record<string, KnownBug>> = {
  'a disk that was not mounted counts as mounted': {
    breaks: starts,
    shows: mounting,
    machine: withPart('disks', () => ({ mount: async () => {} })),
  },

  'a disk is formatted without a look at what is on it': {
    breaks: 'no disk is formatted that has something on it',
    shows: mounting,
    machine: withPart('disks', () => ({ probe: async () => ({ kind: 'nothing' }) })),
  },

  'a disk is unmounted with the first of its pods': {
    breaks: 'no disk is unmounted while a pod has it',
    shows: mounting,
    machine: withPart('disks', () => ({ otherMounts: async () => [] })),
  },

  'a server that was never asked counts as mounted': {
    breaks: starts,
    shows: mounting,
    machine: withPart('networkMounts', () => ({ mount: async () => {} })),
  },

  'what servers have is unmounted as soon as its pod is told to end': {
    breaks: stays,
    shows: mounting,
    ...atTheEnd(async ({ networkMounts, readFile }, uid, signal) => {
      const places = (await readFile('/proc/self/mountinfo')).split(' ');
      for (const place of places.filter((each) => each.includes(`${uid}/volumes/kubernetes.io~nfs/`)))
        await networkMounts?.unmount(place, 'plain', signal);
    }),
  },

  'a device is given without being held': {
    breaks: starts,
    shows: mounting,
    machine: withPart('blockDevices', () => ({ pin: async () => {} })),
  },

  'devices are let go as soon as their pod is told to end': {
    breaks: stays,
    shows: mounting,
    ...atTheEnd(async ({ blockDevices }, uid, signal) => {
      for (const kind of kindsOf(uid)) await blockDevices?.unpin(shownAt(uid, kind), signal);
    }),
  },

  'a device that is still shown counts as hidden': {
    breaks: 'no device goes while a pod is shown it',
    shows: mounting,
    machine: withPart('blockDevices', () => ({ unbind: async () => 'done' })),
  },
};

function withPart<Name extends 'disks' | 'blockDevices' | 'networkMounts'>(
  name: Name,
  change: () => Partial<NonNullable<NodeMachine[Name]>>,
): (machine: NodeMachine) => NodeMachine {
  return (machine) => {
    const part = machine[name];
    return part === undefined ? machine : { ...machine, [name]: withParts<typeof part>(part, change()) };
  };
}
