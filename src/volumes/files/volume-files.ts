import type { Quantity } from '../../lib/index.ts';
import type { WalkProgress } from '../ownership/volume-ownership.ts';

export type VolumeFileKind = 'directory' | 'file' | 'link' | 'other';

/** What is mounted at a directory: nothing, tmpfs, hugetlbfs, or another file system. */
export type MountKind = 'none' | 'memory' | 'huge-pages' | 'other';

/** Space and inodes of a file system. */
export interface VolumeSpace {
  readonly capacityBytes: number;
  readonly availableBytes: number;
  readonly usedBytes: number;
  readonly inodes: number;
  readonly inodesFree: number;
  readonly inodesUsed: number;
}

/** Access that a group gets: read or write for all files, or as the file modes already allow. */
export type GroupAccess = 'read' | 'write' | 'as-is';

/**
 * File operations for volumes. No method follows a symbolic link in the last path component.
 * Failures are FILE_READ and FILE_WRITE errors; a missing path is a result, not a failure.
 */
export interface VolumeFiles {
  kindAt(path: string): Promise<VolumeFileKind | undefined>;
  /** Returns the sorted names in a directory; empty when the directory does not exist. */
  names(directory: string): Promise<readonly string[]>;
  /** Reads the target of a symbolic link; undefined when there is none at the path. */
  readLink(path: string): Promise<string | undefined>;
  /** Reads a regular file; undefined when there is none at the path. */
  readFile(path: string): Promise<Buffer | undefined>;
  /**
   * Creates a directory with all parent directories; also sets the mode of an existing directory.
   */
  makeDirectory(path: string, mode: number): Promise<void>;
  /**
   * Creates a file with exactly this mode and owner, and its parent directories, which all users
   * may traverse.
   */
  writeFile(
    path: string,
    data: Buffer,
    as: { readonly mode: number; readonly owner?: number | undefined },
  ): Promise<void>;
  /** Replaces a file atomically and durably across a power failure; the directory must exist. */
  replaceFile(path: string, data: Buffer, mode: number): Promise<void>;
  /** Creates a symbolic link, with an owner if given. */
  link(target: string, path: string, owner?: number): Promise<void>;
  /** Renames a path; replaces the target atomically. */
  rename(from: string, to: string): Promise<void>;
  /** Removes a file or link; a missing one counts as success. */
  unlink(path: string): Promise<void>;
  /**
   * Sets the group of everything below the directory, and of the directory last; the group may read
   * all files, or write them if requested, and new files inherit the group. Does not block other
   * calls. Files that cannot be changed are reported to `progress`; without it the method rejects.
   */
  giveToGroup(directory: string, group: number, access?: GroupAccess, progress?: WalkProgress): Promise<void>;
  /**
   * Removes a directory with its content; a missing one counts as success. Symbolic links are
   * removed, not followed. Rejects with VOLUME_REMOVE at a mount point, whose content is kept.
   */
  removeTree(directory: string): Promise<void>;
  mountAt(directory: string): Promise<MountKind>;
  /** Returns the mount points below the directory, in mount order. */
  mountsInside(directory: string): Promise<readonly string[]>;
  /**
   * Unmounts all mounts below the directory in reverse mount order; other mount points of the same
   * file systems stay mounted. Returns the first mount in use, which stays mounted with all earlier
   * ones.
   */
  unmountInside(directory: string, signal: AbortSignal): Promise<string | undefined>;
  /**
   * Mounts a tmpfs with the given size and number of inodes, or with the kernel's default limits;
   * without swap when the kernel supports that.
   */
  mountMemory(
    directory: string,
    sizeBytes: bigint | undefined,
    signal: AbortSignal,
    inodes?: number,
  ): Promise<void>;
  /** Mounts a hugetlbfs with this page size; the machine need not have free pages of that size. */
  mountHugePages(directory: string, pageSize: Quantity, signal: AbortSignal): Promise<void>;
  /**
   * Returns the page size of a hugetlbfs mounted at the directory; undefined for other directories.
   */
  pageBytesAt(directory: string): Promise<bigint | undefined>;
  /**
   * Resolves a path and returns what exists there; undefined for a missing path. This is the only
   * method that follows a symbolic link in the last component.
   */
  behind(
    path: string,
  ): Promise<{ readonly path: string; readonly kind: 'directory' | 'block-device' | 'other' } | undefined>;
  /**
   * Returns the space of the file system at a directory. The file system may not respond, but no
   * thread of this process waits for it.
   */
  spaceAt(directory: string, signal: AbortSignal): Promise<VolumeSpace>;
  /** Returns the owner and mode of a directory. */
  ownerOf(directory: string): Promise<{ readonly group: number; readonly mode: number }>;
  /**
   * Bind-mounts a directory without the mounts below it; fails unless all options can be applied.
   */
  bind(source: string, directory: string, options: readonly string[], signal: AbortSignal): Promise<void>;
  /** Adds mount options to an existing mount. */
  remount(directory: string, options: readonly string[], signal: AbortSignal): Promise<void>;
  /**
   * Unmounts the last bind mount at the path with all mounts inside it; other mount points stay
   * mounted.
   */
  unbind(directory: string, signal: AbortSignal): Promise<'done' | 'busy'>;
  /** Removes a directory; returns whether it is removed or not empty. */
  removeEmptyDirectory(directory: string): Promise<'gone' | 'not-empty'>;
  /**
   * Unmounts only the top mount at a directory. Returns `busy` without waiting when the mount is in
   * use.
   */
  unmount(directory: string, signal: AbortSignal): Promise<'done' | 'busy'>;
}
