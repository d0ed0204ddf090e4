import { stat, statfs } from 'node:fs/promises';

/** What a file system has and has left. */
export interface FileSystemSpace {
  /** The same for all paths on one file system, and for no other. */
  readonly device: string;
  readonly capacityBytes: number;
  readonly availableBytes: number;
  /** 0 of file systems that do not count them. */
  readonly inodes: number;
  readonly inodesFree: number;
}

/** The machine's file systems, by paths on them. Rejects for a path that is not there. */
export interface FileSystems {
  at(path: string): Promise<FileSystemSpace>;
}

export function hostFileSystems(): FileSystems {
  return {
    async at(path) {
      const [{ dev }, { blocks, bavail, bsize, files, ffree }] = await Promise.all([
        stat(path),
        statfs(path),
      ]);
      return {
        device: `${dev}`,
        capacityBytes: blocks * bsize,
        availableBytes: bavail * bsize,
        inodes: files,
        inodesFree: ffree,
      };
    },
  };
}
