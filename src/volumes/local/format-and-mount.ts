import { describeError, KubelingError } from '../../lib/index.ts';
import { unusable } from '../projected/payload.ts';

const usualType = 'ext4';

export interface DiskVolume extends Omit<DiskMount, 'fsType'> {
  /** Requested file system type; empty for the existing or the default one. */
  readonly fsType: string;
  /** `read` when nothing may be written to the disk. */
  readonly access: 'read' | 'write';
}

/**
 * Mounts a disk. An empty disk is formatted first; existing content is kept even if it is invalid.
 * Rejects with VOLUME_UNUSABLE; `isMismatch` recognizes the error for a file system other than the
 * requested one.
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

/** Whether the error or one of its causes is a file system mismatch. */
export function isMismatch(error: unknown): boolean {
  if (!(error instanceof KubelingError)) return false;
  return error.details['mismatch'] === true || isMismatch(error.cause);
}

/** Content that was found on a disk. */
export type DiskContent =
  | { readonly kind: 'nothing' }
  | { readonly kind: 'file-system'; readonly type: string }
  /** The disk has content other than a plain file system, such as a partition table. */
  | { readonly kind: 'partitions' };

export interface DiskMount {
  readonly device: string;
  readonly directory: string;
  readonly fsType: string;
  readonly options: readonly string[];
}

/**
 * Disk operations of a machine, by programs with a deadline. Failures are VOLUME_UNUSABLE errors.
 */
export interface Disks {
  /** Returns the content of a disk; never `nothing` for a disk that cannot be read. */
  probe(device: string, signal: AbortSignal): Promise<DiskContent>;
  /** Creates a file system on a disk; existing content is lost. */
  format(device: string, fsType: string, signal: AbortSignal): Promise<void>;
  /** Checks the file system of a disk and repairs what needs no interaction. */
  check(device: string, signal: AbortSignal): Promise<void>;
  /** Grows the file system mounted at the directory to the size of its disk. */
  grow(disk: Pick<DiskMount, 'device' | 'directory'>, signal: AbortSignal): Promise<void>;
  mount(mount: DiskMount, signal: AbortSignal): Promise<void>;
  /** Returns the other mount points of the file system mounted at the directory. */
  otherMounts(directory: string): Promise<readonly string[]>;
  /**
   * Returns the device mounted at the directory; undefined when none is mounted or it cannot be
   * determined.
   */
  deviceAt(directory: string): Promise<string | undefined>;
  /** Whether the device is in exclusive use, for example by a mount in another mount namespace. */
  isHeld(device: string, signal: AbortSignal): Promise<boolean>;
}
