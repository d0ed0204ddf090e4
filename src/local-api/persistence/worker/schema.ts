import { closeSync, fsyncSync, openSync, readSync, renameSync, rmSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { FailureKind, StoreFailureInfo } from './messages.ts';

/** The application ID in the file header; it distinguishes the store from other databases. */
const applicationId = 0x6b_75_62_6c;
const schemaVersion = 1;
/** The size to which SQLite truncates the write-ahead log. */
const sideFileBytes = 16 * 1024 * 1024;

const tables = `
  CREATE TABLE obj (key TEXT PRIMARY KEY NOT NULL, rev INTEGER NOT NULL, create_rev INTEGER NOT NULL, value TEXT NOT NULL);
  CREATE TABLE log (rev INTEGER PRIMARY KEY, key TEXT NOT NULL, op TEXT NOT NULL, value TEXT, before TEXT, ts INTEGER NOT NULL);
  CREATE TABLE meta (key TEXT PRIMARY KEY NOT NULL, value) WITHOUT ROWID;
  PRAGMA application_id = ${applicationId};
  PRAGMA user_version = ${schemaVersion};
`;

/** The temporary path at which a new file is created. */
export function temporaryPathOf(path: string): string {
  return `${path}.new`;
}

/**
 * Verifies the file without changing it; throws a StoreFailure if it is unusable. The caller must
 * hold the lock.
 */
export function checkFile(path: string): 'there' | 'missing' {
  const bytes = sizeOf(path);
  if (bytes === undefined && (sizeOf(`${path}-wal`) ?? 0) > 0)
    throw new StoreFailure('corrupt', 'it is missing, though what was written ahead of it is there');
  if (bytes === undefined) return 'missing';
  // A file under its final name is complete and is never truncated by kubeling, so an empty one is
  // damaged.
  if (bytes === 0) throw new StoreFailure('corrupt', 'it is empty, and was not when it was made');
  checkHeader(path);
  const db = new DatabaseSync(path, { readOnly: true });
  try {
    checkVersions(db);
    checkPages(db);
  } finally {
    db.close();
    // Removes the unused shared-memory file that a read-only connection leaves behind.
    rmSync(`${path}-shm`, { force: true });
  }
  return 'there';
}

/** The size of a file; undefined if it is missing. */
export function sizeOf(path: string): number | undefined {
  return statSync(path, { throwIfNoEntry: false })?.size;
}

/** Checks the file header, because SQLite reports a damaged one with an unclear message. */
function checkHeader(path: string): void {
  const header = Buffer.alloc(16);
  const file = openSync(path, 'r');
  try {
    readSync(file, header, 0, header.length, 0);
  } finally {
    closeSync(file);
  }
  if (header.toString('latin1') !== 'SQLite format 3\0') {
    throw new StoreFailure('corrupt', 'it does not begin as an SQLite database does');
  }
}

function checkVersions(db: DatabaseSync): void {
  const version = numberOf(db, 'PRAGMA user_version');
  if (version > schemaVersion) {
    throw new StoreFailure(
      'newer',
      `its schema has version ${version}, and this kubeling knows versions up to ${schemaVersion}`,
    );
  }
  if (isEmptyDatabase(db)) return;
  if (numberOf(db, 'PRAGMA application_id') !== applicationId || version < 1) {
    throw new StoreFailure('corrupt', 'it is a database of something else');
  }
}

function checkPages(db: DatabaseSync): void {
  const found = String(db.prepare('PRAGMA quick_check(1)').all()[0]?.['quick_check']);
  if (found === 'ok') return;
  // The first line of the result of quick_check may be a heading, so the cause is in the last line.
  const what = found.split('\n').at(-1);
  throw new StoreFailure('corrupt', `its pages do not fit together: ${what}`);
}

/** Creates the file under its temporary name and renames it. */
export function createFile(path: string): void {
  const file = temporaryPathOf(path);
  const db = new DatabaseSync(file);
  try {
    createTables(db);
  } finally {
    db.close();
  }
  renameSync(file, path);
  const directory = openSync(dirname(path), 'r');
  try {
    fsyncSync(directory);
  } finally {
    closeSync(directory);
  }
}

/** Opens the file for reading and writing until the store is closed. */
export function openForWriting(path: string): DatabaseSync {
  const db = new DatabaseSync(path);
  try {
    db.exec('PRAGMA locking_mode = EXCLUSIVE; PRAGMA temp_store = MEMORY; PRAGMA cache_size = -1024;');
    // An empty file at this path was created by an earlier version of kubeling under its final
    // name, so its tables are created now.
    if (isEmptyDatabase(db)) createTables(db);
    db.exec(
      `PRAGMA journal_mode = WAL; PRAGMA journal_size_limit = ${sideFileBytes}; PRAGMA synchronous = FULL;`,
    );
    // Disables automatic checkpoints, so that commits do not wait for them; the main thread
    // schedules them.
    db.exec('PRAGMA wal_autocheckpoint = 0');
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

function createTables(db: DatabaseSync): void {
  // auto_vacuum must be set before the first table is created; set later, it would rewrite the
  // file.
  db.exec('PRAGMA auto_vacuum = INCREMENTAL');
  db.exec(`BEGIN IMMEDIATE; ${tables} COMMIT;`);
}

function isEmptyDatabase(db: DatabaseSync): boolean {
  return numberOf(db, 'SELECT count(*) FROM sqlite_schema') === 0;
}

/** Returns the single number that an SQL statement selects. */
export function numberOf(db: DatabaseSync, sql: string): number {
  return Number(Object.values(db.prepare(sql).get() ?? {})[0] ?? 0);
}

/** An error that the store thread has detected; its message continues a sentence after "as". */
export class StoreFailure extends Error {
  readonly kind: FailureKind;

  constructor(kind: FailureKind, message: string) {
    super(message);
    this.name = 'StoreFailure';
    this.kind = kind;
  }
}

/** The SQLite result codes with a specific kind of failure; all others are general failures. */
const kindsByCode: ReadonlyMap<number, FailureKind> = new Map([
  [5, 'busy'],
  [11, 'corrupt'],
  [13, 'full'],
  [26, 'corrupt'],
]);

/** Converts any error to the message for the main thread. */
export function asFailure(thrown: unknown): StoreFailureInfo {
  if (thrown instanceof StoreFailure) return { kind: thrown.kind, message: thrown.message };
  const { errcode, code, message } = thrown as { errcode?: unknown; code?: unknown; message?: unknown };
  if (code === 'ENOSPC') return { kind: 'full', message: String(message) };
  const kind = typeof errcode === 'number' ? kindsByCode.get(errcode & 0xff) : undefined;
  return { kind: kind ?? 'failed', message: message === undefined ? String(thrown) : String(message) };
}
