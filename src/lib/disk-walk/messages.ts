/** The disk usage of all files below a directory. */
export interface FileCount {
  /** Allocated bytes, as the file system reports them: sparse files use less than their length. */
  readonly usedBytes: number;
  readonly inodesUsed: number;
}

export interface TreeUsage extends FileCount {
  /**
   * Whether all files were counted. Otherwise the usage is a lower bound: the walk took too long,
   * or parts could not be read.
   */
  readonly isComplete: boolean;
  /**
   * The usage by direct subdirectory, if requested; files next to the subdirectories are under the
   * empty name.
   */
  readonly parts?: Readonly<Record<string, FileCount>> | undefined;
}

/**
 * The size of a file system. For a directory with a quota: the limit of the quota and its unused
 * part.
 */
export interface FileSystemSpace extends FileCount {
  readonly capacityBytes: number;
  readonly availableBytes: number;
  readonly inodes: number;
  readonly inodesFree: number;
}

/** A directory to measure. */
export interface Tree {
  readonly path: string;
  readonly parts?: 'by-directory' | undefined;
  /** Set when the caller does not need the space of the file system. */
  readonly space?: 'skipped' | undefined;
}

export type TreeResult =
  | {
      readonly kind: 'counted';
      readonly usage: TreeUsage;
      /** The space of the file system, without the quota of the directory. */
      readonly space?: FileSystemSpace | undefined;
      /** The usage of the tree according to its file system quota, if it has one. */
      readonly quotaBytes?: number | undefined;
    }
  | { readonly kind: 'gone' }
  | { readonly kind: 'failed'; readonly message: string };

export type WalkRequest =
  | { readonly do: 'count'; readonly id: number; readonly trees: readonly Tree[]; readonly limitMs: number }
  | { readonly do: 'stop'; readonly id: number }
  /** A thread that is not blocked in the kernel replies to a ping immediately. */
  | { readonly do: 'ping' };

export interface WalkReply {
  /** The ID of the request; 0 for a ping. */
  readonly id: number;
  readonly results: readonly TreeResult[];
}
