import type { ErrorCode } from '../../../src/lib/index.ts';
import type {
  BlockDevices,
  DiskMount,
  Disks,
  NetworkMount,
  NetworkMounts,
  VolumeFiles,
} from '../../../src/volumes/index.ts';

/** One thing that is done to a machine, and may go wrong. */
export interface PartStep {
  /** What failures are called. */
  readonly code: ErrorCode;
  /** Of what is changed. */
  readonly pathOf: (args: readonly unknown[]) => string;
  /** When a program that does not end is given up; it always ends unless given. */
  readonly deadlineMs?: number;
  /** Whether it may find that something is in use. */
  readonly mayBeBusy?: boolean;
  /** What only one program can have at a time. */
  readonly takes?: (args: readonly unknown[]) => string;
}

/** What may go wrong with a part of the machine; what is not here never does. */
export interface MachinePart<T extends object> {
  readonly name: string;
  readonly steps: { readonly [Method in keyof T]?: PartStep };
}

/** How long programs may take. */
const programMs = 30_000;
const longMs = 10 * 60_000;
const mountMs = 120_000;

const first = (args: readonly unknown[]) => String(args[0]);
const second = (args: readonly unknown[]) => String(args[1]);
const file: PartStep = { code: 'FILE_WRITE', pathOf: first };
const fileBeside: PartStep = { ...file, pathOf: second };
const mount: PartStep = { ...file, deadlineMs: programMs };
const unmount: PartStep = { ...mount, mayBeBusy: true };

export const fileSteps: MachinePart<VolumeFiles> = {
  name: 'volume',
  steps: {
    ...{ makeDirectory: file, writeFile: file, replaceFile: file, unlink: file },
    ...{ link: fileBeside, rename: fileBeside },
    ...{ removeTree: file, removeEmptyDirectory: file, giveToGroup: file },
    ...{ mountMemory: mount, remount: mount, bind: { ...mount, pathOf: second } },
    ...{ unbind: unmount, unmount },
  },
};

const disk: PartStep = { code: 'VOLUME_UNUSABLE', pathOf: first, deadlineMs: programMs };
/** Whoever makes or checks a file system, or mounts it, has the disk for itself. */
const wholeDisk: PartStep = { ...disk, deadlineMs: longMs, takes: first };
const mounted = ([asked]: readonly unknown[]) => asked as DiskMount;

export const diskSteps: MachinePart<Disks> = {
  name: 'disk',
  steps: {
    probe: disk,
    format: wholeDisk,
    check: wholeDisk,
    mount: {
      ...disk,
      deadlineMs: mountMs,
      pathOf: (args) => mounted(args).directory,
      takes: (args) => mounted(args).device,
    },
  },
};

const device: PartStep = { code: 'VOLUME_UNUSABLE', pathOf: first, deadlineMs: programMs };

export const deviceSteps: MachinePart<BlockDevices> = {
  name: 'device',
  steps: {
    bind: { ...device, pathOf: second },
    pin: device,
    unpin: { ...device, code: 'VOLUME_REMOVE' },
    unbind: { ...device, code: 'VOLUME_REMOVE', mayBeBusy: true },
  },
};

/** Whoever waits for a server does so without this. */
export const networkSteps: MachinePart<NetworkMounts> = {
  name: 'network',
  steps: {
    mount: { code: 'VOLUME_UNUSABLE', pathOf: ([asked]) => (asked as NetworkMount).directory },
    unmount: { code: 'VOLUME_REMOVE', pathOf: first, mayBeBusy: true },
  },
};
