import type { Quantity } from '../../lib/index.ts';
import type { WalkProgress } from '../ownership/volume-ownership.ts';

export type VolumeFileKind = 'directory' | 'file' | 'link' | 'other';

/** What is mounted at a directory: nothing, tmpfs, hugetlbfs, or something else. */
export type MountKind = 'none' | 'memory' | 'huge-pages' | 'other';

/** The statistics of a file system. */
export interface VolumeSpace {
  readonly capacityBytes: number;
  readonly availableBytes: number;
  readonly usedBytes: number;
  readonly inodes: number;
  readonly inodesFree: number;
  readonly inodesUsed: number;
}

/** The access of a group: read or write for all files, or as the modes already allow. */
export type GroupAccess = 'read' | 'write' | 'as-is';

/**
 * The file operations for volumes. No method follows a symbolic link in the last path component.
 * Failures are FILE_READ and FILE_WRITE errors; a missing path is a result, not a failure.
 */
export interface VolumeFiles {
  kindAt(path: string): Promise<VolumeFileKind | undefined>;
  /** Returns the sorted names in a directory; none if the directory does not exist. */
  names(directory: string): Promise<readonly string[]>;
  /** Undefined if there is no symbolic link. */
  readLink(path: string): Promise<string | undefined>;
  /** Undefined if there is no regular file. */
  readFile(path: string): Promise<Buffer | undefined>;
  /** Creates all parent directories; sets the mode also of an existing directory. */
  makeDirectory(path: string, mode: number): Promise<void>;
  /**
   * Creates a file with exactly this mode and owner, and parent directories that all users may
   * traverse.
   */
  writeFile(
    path: string,
    data: Buffer,
    as: { readonly mode: number; readonly owner?: number | undefined },
  ): Promise<void>;
  /** Atomic and durable across a power failure; the directory must exist. */
  replaceFile(path: string, data: Buffer, mode: number): Promise<void>;
  /** Creates a symbolic link. */
  link(target: string, path: string, owner?: number): Promise<void>;
  /** Replaces the target atomically. */
  rename(from: string, to: string): Promise<void>;
  /** Removes a file or link; a missing one counts as success. */
  unlink(path: string): Promise<void>;
  /**
   * Sets the group of everything below the directory, and of the directory last; the group may read
   * all files, or write them if requested, and new files inherit the group. Runs without blocking
   * other calls. Rejects if a file cannot be changed, unless progress is reported.
   */
  giveToGroup(directory: string, group: number, access?: GroupAccess, progress?: WalkProgress): Promise<void>;
  /**
   * Removes a directory with its content; a missing one counts as success. Symbolic links are
   * removed, not followed. Rejects with VOLUME_REMOVE at a mount point and keeps its content.
   */
  removeTree(directory: string): Promise<void>;
  mountAt(directory: string): Promise<MountKind>;
  /** Returns the mount points below the directory, in mount order. */
  mountsInside(directory: string): Promise<readonly string[]>;
  /**
   * Unmounts everything below the directory in reverse mount order; other mount points of the same
   * file systems stay. Returns the first mount in use, which stays with all earlier ones.
   */
  unmountInside(directory: string, signal: AbortSignal): Promise<string | undefined>;
  /** Mounts a new file system in memory; it has as much room as the kernel likes unless told. Never swapped if that can be had. */
  mountMemory(
    directory: string,
    sizeBytes: bigint | undefined,
    signal: AbortSignal,
    inodes?: number,
  ): Promise<void>;
  /** Mounts a new file system of huge pages of that size, of which the machine need not have any free. */
  mountHugePages(directory: string, pageSize: Quantity, signal: AbortSignal): Promise<void>;
  /** Returns the page size of a hugetlbfs directory; undefined for other directories. */
  pageBytesAt(directory: string): Promise<bigint | undefined>;
  /**
   * Resolves a path and returns what is there; undefined for nothing. The only method that follows
   * a symbolic link in the last component.
   */
  behind(
    path: string,
  ): Promise<{ readonly path: string; readonly kind: 'directory' | 'block-device' | 'other' } | undefined>;
  /**
   * Returns the space of the file system. It may not respond; no thread of this process waits for
   * it.
   */
  spaceAt(directory: string, signal: AbortSignal): Promise<VolumeSpace>;
  /** Returns the owner and mode of a directory. */
  ownerOf(directory: string): Promise<{ readonly group: number; readonly mode: number }>;
  /** Bind-mounts a directory without its submounts; fails unless all options are applied. */
  bind(source: string, directory: string, options: readonly string[], signal: AbortSignal): Promise<void>;
  /** Adds mount options to a mount. */
  remount(directory: string, options: readonly string[], signal: AbortSignal): Promise<void>;
  /**
   * Removes the last bind mount at the path with everything mounted inside it since; other mount
   * points stay.
   */
  unbind(directory: string, signal: AbortSignal): Promise<'done' | 'busy'>;
  /** Returns whether the directory is gone or not empty. */
  removeEmptyDirectory(directory: string): Promise<'gone' | 'not-empty'>;
  /** Unmounts only the top mount. Returns that it is in use instead of waiting. */
  unmount(directory: string, signal: AbortSignal): Promise<'done' | 'busy'>;
}
