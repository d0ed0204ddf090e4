/**
 * The messages between the main thread and the store thread. Requests are executed serially, in
 * order. All data is plain and is copied.
 */

/** A row of the log: one change of one object. */
export interface ChangeRow {
  readonly rev: number;
  readonly key: string;
  readonly op: 'ADDED' | 'MODIFIED' | 'DELETED';
  /** The object after the change as JSON; for a deletion its last state. */
  readonly value: string;
  /** The store time of the change in milliseconds. */
  readonly ts: number;
}

/**
 * How durable a change is before its request is answered. `disk`: synced to the disk. `system`:
 * survives a crash of the process, but not a power failure.
 */
export type SyncLevel = 'disk' | 'system';

export interface CommitRequest {
  readonly do: 'commit';
  /** The changes sorted by revision; at least one. */
  readonly rows: readonly ChangeRow[];
  readonly safety: SyncLevel;
  /** Resource definitions, by key, to persist with the rows. */
  readonly facts: readonly (readonly [string, string])[];
}

export interface CompactRequest {
  readonly do: 'compact';
  /**
   * Rows with an earlier store time are removed, and also the oldest rows beyond `keepRows` and
   * `keepBytes`.
   */
  readonly olderThan: number;
  readonly keepRows: number;
  readonly keepBytes: number;
}

export interface ObjectsPage {
  readonly rows: readonly { readonly key: string; readonly value: string }[];
}

export interface LogRow extends Omit<ChangeRow, 'value'> {
  /**
   * For a deletion, the last state of the object; null for any other change, because its resulting
   * object is the `before` of the object's next change, or the current object.
   */
  readonly value: string | null;
  readonly before: string | null;
}

/** Statistics of the file after a request. */
export interface FileStats {
  readonly objects: number;
  readonly logRows: number;
  readonly logBytes: number;
  readonly fileBytes: number;
  readonly walBytes: number;
  /** The approximate size of the part of the write-ahead log that is not checkpointed. */
  readonly aheadBytes: number;
}

export interface Opened {
  /** The highest revision that may have been assigned. */
  readonly revision: number;
  /** The changes up to this revision were removed by compaction. */
  readonly compacted: number;
  /** The store time of the last write. */
  readonly ts: number;
  readonly facts: readonly (readonly [string, string])[];
  /** The size of all objects as JSON, in bytes. */
  readonly objectBytes: number;
  readonly stats: FileStats;
}

/** The request and the result of each call. */
export interface StoreCalls {
  readonly open: {
    readonly request: { readonly do: 'open'; readonly path: string };
    readonly result: Opened;
  };
  /** Returns a page of the objects whose keys follow the given key. */
  readonly objects: {
    readonly request: { readonly do: 'objects'; readonly after: string };
    readonly result: ObjectsPage;
  };
  /** Returns a page of log rows before a revision, newest first. */
  readonly log: {
    readonly request: { readonly do: 'log'; readonly before: number };
    readonly result: { readonly rows: readonly LogRow[] };
  };
  readonly commit: { readonly request: CommitRequest; readonly result: FileStats };
  /** Removes one batch of log rows; `more` means that another call is needed. */
  readonly compact: {
    readonly request: CompactRequest;
    readonly result: { readonly removed: number; readonly more: boolean; readonly stats: FileStats };
  };
  /** Checkpoints the write-ahead log into the file. */
  readonly checkpoint: { readonly request: { readonly do: 'checkpoint' }; readonly result: FileStats };
  /** Returns some free pages to the file system, and truncates the write-ahead log. */
  readonly tidy: {
    readonly request: { readonly do: 'tidy' };
    readonly result: { readonly more: boolean; readonly stats: FileStats };
  };
  /** Ends the thread: persists the last revision and the store time. No request may follow. */
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
