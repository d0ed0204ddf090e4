/**
 * The messages between the main thread and the store thread. Requests are executed serially, in
 * order. All data is plain and is copied.
 */

/** One change of one object. */
export interface ChangeRow {
  readonly rev: number;
  readonly key: string;
  readonly op: 'ADDED' | 'MODIFIED' | 'DELETED';
  /** The object after the change; for a deletion its last state. */
  readonly value: string;
  /** The monotonic time of the store in milliseconds. */
  readonly ts: number;
}

/**
 * `disk`: synced before the response. `system`: survives a crash of the process, but not a power
 * failure.
 */
export type SyncLevel = 'disk' | 'system';

export interface CommitRequest {
  readonly do: 'commit';
  /** Sorted by revision; at least one. */
  readonly rows: readonly ChangeRow[];
  readonly safety: SyncLevel;
  /** Resource definitions to persist with the rows. */
  readonly facts: readonly (readonly [string, string])[];
}

export interface CompactRequest {
  readonly do: 'compact';
  /** Rows older than this are removed, and the oldest rows above the limits. */
  readonly olderThan: number;
  readonly keepRows: number;
  readonly keepBytes: number;
}

export interface ObjectsPage {
  readonly rows: readonly { readonly key: string; readonly value: string }[];
}

export interface LogRow extends Omit<ChangeRow, 'value'> {
  /**
   * Only for deletions: otherwise it is the `before` of the object's next change, or the current
   * object.
   */
  readonly value: string | null;
  readonly before: string | null;
}

/** The state of the file after the request. */
export interface FileStats {
  readonly objects: number;
  readonly logRows: number;
  readonly logBytes: number;
  readonly fileBytes: number;
  readonly walBytes: number;
  /** The approximate size of the write-ahead log that is not checkpointed. */
  readonly aheadBytes: number;
}

export interface Opened {
  /** The highest revision that may have been assigned. */
  readonly revision: number;
  /** Changes up to this revision are compacted. */
  readonly compacted: number;
  /** The store time of the last write. */
  readonly ts: number;
  readonly facts: readonly (readonly [string, string])[];
  /** The size of all objects as JSON. */
  readonly objectBytes: number;
  readonly stats: FileStats;
}

/** Each request with its response. */
export interface StoreCalls {
  readonly open: {
    readonly request: { readonly do: 'open'; readonly path: string };
    readonly result: Opened;
  };
  /** A page of objects after a key. */
  readonly objects: {
    readonly request: { readonly do: 'objects'; readonly after: string };
    readonly result: ObjectsPage;
  };
  /** A page of the log before a revision, newest first. */
  readonly log: {
    readonly request: { readonly do: 'log'; readonly before: number };
    readonly result: { readonly rows: readonly LogRow[] };
  };
  readonly commit: { readonly request: CommitRequest; readonly result: FileStats };
  /** Removes one batch; `more` requests another call. */
  readonly compact: {
    readonly request: CompactRequest;
    readonly result: { readonly removed: number; readonly more: boolean; readonly stats: FileStats };
  };
  /** Checkpoints the write-ahead log. */
  readonly checkpoint: { readonly request: { readonly do: 'checkpoint' }; readonly result: FileStats };
  /** Returns free pages to the file system, some at a time, and truncates the write-ahead log. */
  readonly tidy: {
    readonly request: { readonly do: 'tidy' };
    readonly result: { readonly more: boolean; readonly stats: FileStats };
  };
  /** The last request: persists the last revision and the store time. */
  readonly close: {
    readonly request: { readonly do: 'close'; readonly revision: number; readonly ts: number };
    readonly result: FileStats;
  };
}

export type CallName = keyof StoreCalls;
export type StoreRequest = StoreCalls[CallName]['request'];
export type StoreResult = StoreCalls[CallName]['result'];

export type FailureKind =
  /** The file is damaged. */
  | 'corrupt'
  /** A later version of kubeling wrote the file. */
  | 'newer'
  /** Another process has the file open. */
  | 'busy'
  /** The disk is full. */
  | 'full'
  | 'failed';

export interface StoreFailureInfo {
  readonly kind: FailureKind;
  readonly message: string;
}

export type StoreReply =
  | { readonly id: number; readonly result: StoreResult }
  | { readonly id: number; readonly failure: StoreFailureInfo };
