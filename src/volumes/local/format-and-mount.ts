import { describeError, KubelingError } from '../../lib/index.ts';
import { unusable } from '../projected/payload.ts';

const usualType = 'ext4';

export interface DiskVolume extends Omit<DiskMount, 'fsType'> {
  /** The one that is there, or else the usual one, when empty. */
  readonly fsType: string;
  /** Then nothing is written to it. */
  readonly access: 'read' | 'write';
}

/**
 * Mounts a disk. One with nothing on it gets a file system first; whatever is on one stays, however wrong it is. Rejects
 * with VOLUME_UNUSABLE, which `isMismatch` recognizes if another file system was there than was asked for.
 */
export async function formatAndMount(disks: Disks, volume: DiskVolume, signal: AbortSignal): Promise<void> {
  const { device, directory, options, access } = volume;
  const found = await disks.probe(device, signal);
  if (found.kind === 'nothing' && access === 'read')
    throw unusable(`cannot mount unformatted disk ${device} as we are manipulating it in read-only mode`);
  const there = found.kind === 'file-system' ? found.type : '';
  const fsType = volume.fsType || there || usualType;
  if (found.kind === 'nothing') await disks.format(device, fsType, signal);
  else if (found.kind === 'file-system' && access === 'write') await disks.check(device, signal);
  const mount = { device, directory, fsType, options };
  await disks.mount(mount, signal).catch((error: unknown) => {
    signal.throwIfAborted();
    const isOther = found.kind !== 'nothing' && fsType !== there;
    const details = { mismatch: isOther };
    throw new KubelingError('VOLUME_UNUSABLE', describeError(error), { details, cause: error });
  });
}

/** Told through what was wrapped around it since. */
export function isMismatch(error: unknown): boolean {
  if (!(error instanceof KubelingError)) return false;
  return error.details['mismatch'] === true || isMismatch(error.cause);
}

/** What was found on a disk. */
export type DiskContent =
  | { readonly kind: 'nothing' }
  | { readonly kind: 'file-system'; readonly type: string }
  /** Or anything else that is somebody's. */
  | { readonly kind: 'partitions' };

export interface DiskMount {
  readonly device: string;
  readonly directory: string;
  readonly fsType: string;
  readonly options: readonly string[];
}

/** The disks of a machine, by programs that end in their time. Failures are VOLUME_UNUSABLE errors. */
export interface Disks {
  /** Never answers `nothing` for what it cannot read. */
  probe(device: string, signal: AbortSignal): Promise<DiskContent>;
  /** Makes a file system; what was there is lost. */
  format(device: string, fsType: string, signal: AbortSignal): Promise<void>;
  /** Mends what can be mended without asking. */
  check(device: string, signal: AbortSignal): Promise<void>;
  /** Makes the file system that is mounted at the directory as large as its disk is by now. */
  grow(disk: Pick<DiskMount, 'device' | 'directory'>, signal: AbortSignal): Promise<void>;
  mount(mount: DiskMount, signal: AbortSignal): Promise<void>;
  /** Where else what is mounted at the directory is mounted, too. */
  otherMounts(directory: string): Promise<readonly string[]>;
  /** The device that is mounted at the directory; undefined when none is, or it cannot be told. */
  deviceAt(directory: string): Promise<string | undefined>;
  /** Whether somebody has the device for himself, such as a mount that is not seen from here. */
  isHeld(device: string, signal: AbortSignal): Promise<boolean>;
}
