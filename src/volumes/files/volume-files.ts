import type { Quantity } from '../../lib/index.ts';
import type { WalkProgress } from '../ownership/volume-ownership.ts';

export type VolumeFileKind = 'directory' | 'file' | 'link' | 'other';

/** What is mounted at a directory itself: nothing, a file system in memory, one of huge pages, or something else. */
export type MountKind = 'none' | 'memory' | 'huge-pages' | 'other';

/** How much a file system holds. */
export interface VolumeSpace {
  readonly capacityBytes: number;
  readonly availableBytes: number;
  readonly usedBytes: number;
  readonly inodes: number;
  readonly inodesFree: number;
  readonly inodesUsed: number;
}

/** What a group may do with what it is given: to read or write all of it, or only what the modes say already. */
export type GroupAccess = 'read' | 'write' | 'as-is';

/**
 * The machine's files as far as volumes that are filled from here need them. No method follows a link at the end of its
 * path. Failures are FILE_READ and FILE_WRITE errors; what is not there is an answer, not a failure.
 */
export interface VolumeFiles {
  kindAt(path: string): Promise<VolumeFileKind | undefined>;
  /** The names in a directory, sorted; none when there is no such directory. */
  names(directory: string): Promise<readonly string[]>;
  /** Undefined when there is no link. */
  readLink(path: string): Promise<string | undefined>;
  /** Undefined when there is no regular file. */
  readFile(path: string): Promise<Buffer | undefined>;
  /** With all directories above it. It has these permissions then, also if it was there before. */
  makeDirectory(path: string, mode: number): Promise<void>;
  /** A new file with exactly this mode and owner, and directories above it that everybody may pass. */
  writeFile(
    path: string,
    data: Buffer,
    as: { readonly mode: number; readonly owner?: number | undefined },
  ): Promise<void>;
  /** In one step and for good, also if the power fails; the directory must be there. */
  replaceFile(path: string, data: Buffer, mode: number): Promise<void>;
  /** A new link. */
  link(target: string, path: string, owner?: number): Promise<void>;
  /** In one step, in place of what is there. */
  rename(from: string, to: string): Promise<void>;
  /** A file or a link; fine when it is not there. */
  unlink(path: string): Promise<void>;
  /**
   * Gives everything below the directory, and at last the directory, to a group that may read it all, unless told to
   * write too, and go through it; what is made in the directories later belongs to the group too. However long it takes, nobody else is held up. Rejects
   * for what cannot be changed, unless there is somebody to tell.
   */
  giveToGroup(directory: string, group: number, access?: GroupAccess, news?: WalkProgress): Promise<void>;
  /**
   * A directory with all that is in it; fine when it is not there. Links are removed, never followed. Rejects with
   * VOLUME_REMOVE where something is mounted, and leaves that as it is.
   */
  removeTree(directory: string): Promise<void>;
  mountAt(directory: string): Promise<MountKind>;
  /** Where something is mounted below the directory, in the order it was. */
  mountsInside(directory: string): Promise<readonly string[]>;
  /**
   * Unmounts all that is mounted below the directory, what was mounted last first; where it is mounted elsewhere too it
   * stays. Answers the first that is in use, which then stays with all that was mounted before it.
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
  /** The size of the pages a directory on huge ones has; undefined for every other. */
  pageBytesAt(directory: string): Promise<bigint | undefined>;
  /** What is at the far end of a path, and where that is; undefined for nothing. The only method that follows links there. */
  behind(
    path: string,
  ): Promise<{ readonly path: string; readonly kind: 'directory' | 'block-device' | 'other' } | undefined>;
  /** Of the file system there. It may be one that does not answer: nothing of this process waits for it. */
  spaceAt(directory: string, signal: AbortSignal): Promise<VolumeSpace>;
  /** Whose a directory is, and its mode. */
  ownerOf(directory: string): Promise<{ readonly group: number; readonly mode: number }>;
  /** Shows a directory at another place as well, without what is mounted in it; not at all unless with all options. */
  bind(source: string, directory: string, options: readonly string[], signal: AbortSignal): Promise<void>;
  /** Gives the options to what is shown there; those it has stay. */
  remount(directory: string, options: readonly string[], signal: AbortSignal): Promise<void>;
  /**
   * Undoes a bind, the last one there; whatever was mounted inside since is no longer shown here, and is where it is
   * shown elsewhere.
   */
  unbind(directory: string, signal: AbortSignal): Promise<'done' | 'busy'>;
  /** Answers whether there is no such directory any more, or whether something in it keeps it. */
  removeEmptyDirectory(directory: string): Promise<'gone' | 'not-empty'>;
  /** Only what was mounted last. Answers that it is in use instead of waiting. */
  unmount(directory: string, signal: AbortSignal): Promise<'done' | 'busy'>;
}
