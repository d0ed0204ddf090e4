/** What lies below a directory. */
export interface FileCount {
  /** Of the disk, as the file system gives it out: files with holes take less than they are long. */
  readonly usedBytes: number;
  readonly inodesUsed: number;
}

export interface TreeUsage extends FileCount {
  /** Whether all of it was counted. Otherwise there is at least so much: it took too long, or could not be read. */
  readonly isComplete: boolean;
  /** By directory right below the tree's own, where asked for; what lies beside them is under the empty name. */
  readonly parts?: Readonly<Record<string, FileCount>> | undefined;
}

/** How much a file system holds. Those with a quota for the directory tell what is left of that. */
export interface FileSystemSpace extends FileCount {
  readonly capacityBytes: number;
  readonly availableBytes: number;
  readonly inodes: number;
  readonly inodesFree: number;
}

/** A directory to be counted. */
export interface Tree {
  readonly path: string;
  readonly parts?: 'by-directory' | undefined;
  /** Whether how full its file system is, is wanted too; it is unless told. */
  readonly space?: 'unwanted' | undefined;
}

export type TreeResult =
  | {
      readonly kind: 'counted';
      readonly usage: TreeUsage;
      /** Of the file system it is on; without the quota of the directory, where it has one. */
      readonly space?: FileSystemSpace | undefined;
      /** What the file system itself says all of the tree takes, where it keeps a quota for it. */
      readonly quotaBytes?: number | undefined;
    }
  | { readonly kind: 'gone' }
  | { readonly kind: 'failed'; readonly message: string };

export type WalkRequest =
  | { readonly do: 'count'; readonly id: number; readonly trees: readonly Tree[]; readonly limitMs: number }
  | { readonly do: 'stop'; readonly id: number }
  /** Answered at once by a thread that is not held in the kernel. */
  | { readonly do: 'ping' };

export interface WalkReply {
  /** 0 for a ping. */
  readonly id: number;
  readonly results: readonly TreeResult[];
}
