import type { ErrorCode } from '../../../src/lib/index.ts';
import type {
  BlockDevices,
  DiskMount,
  Disks,
  NetworkMount,
  NetworkMounts,
  VolumeFiles,
} from '../../../src/volumes/index.ts';

/** An operation on the machine for which failures can be injected. */
export interface PartStep {
  /** The error code of injected failures. */
  readonly code: ErrorCode;
  /** Extracts the changed path from the arguments. */
  readonly pathOf: (args: readonly unknown[]) => string;
  /** After how long a hanging program is killed; undefined for operations that never hang. */
  readonly deadlineMs?: number;
  /** Whether the operation may fail with EBUSY. */
  readonly mayBeBusy?: boolean;
  /** Extracts from the arguments the resource that only one program can use at a time. */
  readonly takes?: (args: readonly unknown[]) => string;
}

/**
 * The operations of a part of the machine for which failures can be injected; others never fail.
 */
export interface MachinePart<T extends object> {
  readonly name: string;
  readonly steps: { readonly [Method in keyof T]?: PartStep };
}

/** After how long hanging programs of the machine are killed. */
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
/** Programs that create, check or mount a file system use the disk exclusively. */
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

/** Network mounts have no injected hangs: the simulated server itself makes them hang. */
export const networkSteps: MachinePart<NetworkMounts> = {
  name: 'network',
  steps: {
    mount: { code: 'VOLUME_UNUSABLE', pathOf: ([asked]) => (asked as NetworkMount).directory },
    unmount: { code: 'VOLUME_REMOVE', pathOf: first, mayBeBusy: true },
  },
};
