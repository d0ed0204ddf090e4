/**
 * What is said between the thread of the kubelet and the one that writes the file. Requests are done one after the
 * other, in the order in which they came. All of it is plain data: it crosses by copy.
 */

/** One change of one object, ready to be written. */
export interface ChangeRow {
  readonly rev: number;
  readonly key: string;
  readonly op: 'ADDED' | 'MODIFIED' | 'DELETED';
  /** The object as it is after the change; for a deletion as it was at last. */
  readonly value: string;
  /** Milliseconds of the store's own time, which never goes back. */
  readonly ts: number;
}

/** `disk`: on the disk when it is answered. `system`: safe from our own end, but not yet from a power failure. */
export type SyncLevel = 'disk' | 'system';

export interface CommitRequest {
  readonly do: 'commit';
  /** In the order of revisions; at least one. */
  readonly rows: readonly ChangeRow[];
  readonly safety: SyncLevel;
  /** Facts that must be there no later than the rows. */
  readonly facts: readonly (readonly [string, string])[];
}

export interface CompactRequest {
  readonly do: 'compact';
  /** Of the log, what happened before this time may go; and the oldest of what is more than the rest allows. */
  readonly olderThan: number;
  readonly keepRows: number;
  readonly keepBytes: number;
}

export interface ObjectsPage {
  readonly rows: readonly { readonly key: string; readonly value: string }[];
}

export interface LogRow extends Omit<ChangeRow, 'value'> {
  /** Only of a deletion: of all others it is what the next change of the object, or the object itself, tells. */
  readonly value: string | null;
  readonly before: string | null;
}

/** Figures of the file as they are after the request. */
export interface FileStats {
  readonly objects: number;
  readonly logRows: number;
  readonly logBytes: number;
  readonly fileBytes: number;
  readonly walBytes: number;
  /** About so much was written ahead and is not in the file itself yet. */
  readonly aheadBytes: number;
}

export interface Opened {
  /** The newest revision that may ever have been given. */
  readonly revision: number;
  /** What happened up to this revision is forgotten. */
  readonly compacted: number;
  /** The store's own time when it was last written. */
  readonly ts: number;
  readonly facts: readonly (readonly [string, string])[];
  /** The size of all objects as JSON. */
  readonly objectBytes: number;
  readonly stats: FileStats;
}

/** Each request with what it is answered. */
export interface StoreCalls {
  readonly open: {
    readonly request: { readonly do: 'open'; readonly path: string };
    readonly answer: Opened;
  };
  /** A page of the objects after a key. */
  readonly objects: {
    readonly request: { readonly do: 'objects'; readonly after: string };
    readonly answer: ObjectsPage;
  };
  /** A page of the log before a revision, newest first. */
  readonly log: {
    readonly request: { readonly do: 'log'; readonly before: number };
    readonly answer: { readonly rows: readonly LogRow[] };
  };
  readonly commit: { readonly request: CommitRequest; readonly answer: FileStats };
  /** Removes a batch; `more` says that another is due. */
  readonly compact: {
    readonly request: CompactRequest;
    readonly answer: { readonly removed: number; readonly more: boolean; readonly stats: FileStats };
  };
  /** Brings what was written ahead into the file itself. */
  readonly checkpoint: { readonly request: { readonly do: 'checkpoint' }; readonly answer: FileStats };
  /** Gives free pages back to the file system, some at a time, and empties the write-ahead log. */
  readonly tidy: {
    readonly request: { readonly do: 'tidy' };
    readonly answer: { readonly more: boolean; readonly stats: FileStats };
  };
  /** The last one: no revision above this one was given, and the store's own time is this. */
  readonly close: {
    readonly request: { readonly do: 'close'; readonly revision: number; readonly ts: number };
    readonly answer: FileStats;
  };
}

export type CallName = keyof StoreCalls;
export type StoreRequest = StoreCalls[CallName]['request'];
export type StoreResult = StoreCalls[CallName]['answer'];

export type FailureKind =
  /** The file cannot be believed. */
  | 'corrupt'
  /** A later version of kubeling wrote it. */
  | 'newer'
  /** Another process has it open. */
  | 'busy'
  /** No room on the disk. */
  | 'full'
  | 'failed';

export interface StoreFailureInfo {
  readonly kind: FailureKind;
  readonly message: string;
}

export type StoreReply =
  | { readonly id: number; readonly answer: StoreResult }
  | { readonly id: number; readonly failure: StoreFailureInfo };
