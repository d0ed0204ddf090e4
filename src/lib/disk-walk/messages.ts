/** Usage of everything below a directory. */
export interface FileCount {
  /** Allocated bytes, as the file system reports them: sparse files use less than their length. */
  readonly usedBytes: number;
  readonly inodesUsed: number;
}

export interface TreeUsage extends FileCount {
  /**
   * Whether everything was counted. Otherwise it is a lower bound: the walk took too long, or parts
   * could not be read.
   */
  readonly isComplete: boolean;
  /** By direct subdirectory, if requested; files beside them are under the empty name. */
  readonly parts?: Readonly<Record<string, FileCount>> | undefined;
}

/** Capacity of a file system. With a quota for the directory, the quota and what is left of it. */
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
  /** Set when the space of its file system is not needed. */
  readonly space?: 'unwanted' | undefined;
}

export type TreeResult =
  | {
      readonly kind: 'counted';
      readonly usage: TreeUsage;
      /** Of the file system, without the quota of the directory. */
      readonly space?: FileSystemSpace | undefined;
      /** The usage of the tree according to the quota of the file system, if there is one. */
      readonly quotaBytes?: number | undefined;
    }
  | { readonly kind: 'gone' }
  | { readonly kind: 'failed'; readonly message: string };

export type WalkRequest =
  | { readonly do: 'count'; readonly id: number; readonly trees: readonly Tree[]; readonly limitMs: number }
  | { readonly do: 'stop'; readonly id: number }
  /** Answered immediately by a thread that is not blocked in the kernel. */
  | { readonly do: 'ping' };

export interface WalkReply {
  /** 0 for a ping. */
  readonly id: number;
  readonly results: readonly TreeResult[];
}
