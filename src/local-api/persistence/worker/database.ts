import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type {
  ChangeRow,
  CommitRequest,
  CompactRequest,
  FileStats,
  LogRow,
  ObjectsPage,
  Opened,
  SyncLevel,
} from './messages.ts';
import { checkFile, createFile, numberOf, openForWriting, sizeOf } from './schema.ts';

/** The number of revisions that may be assigned without a disk sync. */
const reservedAhead = 1_000;
const compactBatch = 500;
/**
 * The maximum number of rows and characters in a page, which limits the memory of the main thread
 * and the store thread; a single row may be larger.
 */
const pageRows = 200;
const pageLength = 1024 * 1024;
/** The number of free pages that one call returns to the file system, about 2 MB. */
const vacuumPages = 500;
/** The free pages that are kept for new data: this number or this share of the file. */
const slackPages = 256;
const slackShare = 1 / 8;

/**
 * The SQLite database of the store. Log rows are undo records with the object before the change, so
 * that the oldest rows can be removed without affecting the others.
 */
export class StoreDatabase {
  readonly #path: string;
  readonly #db: DatabaseSync;
  readonly #addToLog: StatementSync;
  readonly #putObject: StatementSync;
  readonly #removeObject: StatementSync;
  readonly #putMeta: StatementSync;
  #safety: SyncLevel = 'disk';
  /** The persisted revision up to which revisions may have been assigned. */
  #reserved: number;
  #objects: number;
  #logRows: number;
  #logBytes: number;
  #aheadBytes = 0;

  constructor(path: string) {
    if (checkFile(path) === 'missing') createFile(path);
    this.#path = path;
    const db = openForWriting(path);
    this.#db = db;
    this.#addToLog = db.prepare(`INSERT INTO log (rev, key, op, value, before, ts)
      VALUES (?1, ?2, ?3, ?4, (SELECT value FROM obj WHERE key = ?2), ?5)
      RETURNING coalesce(octet_length(value), 0) + coalesce(octet_length(before), 0) AS bytes`);
    this.#putObject = db.prepare(`INSERT INTO obj (key, rev, create_rev, value) VALUES (?1, ?2, ?2, ?3)
      ON CONFLICT (key) DO UPDATE SET rev = excluded.rev, value = excluded.value`);
    this.#removeObject = db.prepare('DELETE FROM obj WHERE key = ?');
    this.#putMeta = db.prepare(
      'INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value',
    );
    this.#reserved = this.#meta('reserved');
    this.#objects = numberOf(db, 'SELECT count(*) FROM obj');
    this.#logRows = numberOf(db, 'SELECT count(*) FROM log');
    this.#logBytes = numberOf(db, `SELECT sum(${logRowBytes}) FROM log`);
  }

  opened(): Opened {
    const compacted = this.#meta('compacted');
    const newest = numberOf(this.#db, 'SELECT max(rev) FROM log');
    return {
      revision: Math.max(newest, compacted, this.#reserved),
      compacted,
      ts: Math.max(numberOf(this.#db, 'SELECT ts FROM log ORDER BY rev DESC LIMIT 1'), this.#meta('ts')),
      facts: this.#db
        .prepare(`SELECT key, value FROM meta WHERE key LIKE 'fact:%'`)
        .all()
        .map(({ key, value }) => [String(key).slice('fact:'.length), String(value)]),
      // Sums the sizes of all objects with a query that reads only the header of each row, so that
      // it is fast for large objects.
      objectBytes: numberOf(this.#db, 'SELECT sum(octet_length(value)) FROM obj'),
      stats: this.stats(),
    };
  }

  objects(after: string): ObjectsPage {
    const statement = this.#db.prepare('SELECT key, value FROM obj WHERE key > ? ORDER BY key');
    return {
      rows: page(statement.iterate(after) as Iterable<unknown> as Iterable<ObjectsPage['rows'][number]>),
    };
  }

  log(before: number): { readonly rows: readonly LogRow[] } {
    const statement = this.#db.prepare(
      'SELECT rev, key, op, value, before, ts FROM log WHERE rev < ? ORDER BY rev DESC',
    );
    return { rows: page(statement.iterate(before) as Iterable<unknown> as Iterable<LogRow>) };
  }

  commit({ rows, facts, safety }: CommitRequest): FileStats {
    const newest = rows.at(-1)?.rev ?? 0;
    const reserve = safety === 'system' && newest > this.#reserved ? newest + reservedAhead : undefined;
    let bytes = 0;
    this.#transaction(reserve === undefined ? safety : 'disk', () => {
      if (reserve !== undefined) this.#putMeta.run('reserved', reserve);
      for (const [name, value] of facts) this.#putMeta.run(`fact:${name}`, value);
      for (const row of rows) bytes += this.#writeRow(row);
    });
    this.#reserved = reserve ?? this.#reserved;
    this.#logRows += rows.length;
    this.#logBytes += bytes;
    this.#aheadBytes += rows.reduce((sum, { value }) => sum + estimatedWalBytes(value), 0);
    for (const { op } of rows) this.#objects += op === 'ADDED' ? 1 : op === 'DELETED' ? -1 : 0;
    return this.stats();
  }

  compact({ olderThan, keepRows, keepBytes }: CompactRequest) {
    const oldest = this.#db
      .prepare(`SELECT rev, ts, ${logRowBytes} AS bytes FROM log ORDER BY rev LIMIT ?`)
      .all(compactBatch) as unknown as readonly { rev: number; ts: number; bytes: number }[];
    let [rows, bytes] = [this.#logRows, this.#logBytes];
    const staying = oldest.findIndex((row) => {
      if (row.ts >= olderThan && rows <= keepRows && bytes <= keepBytes) return true;
      rows--;
      bytes -= row.bytes;
      return false;
    });
    const going = staying === -1 ? oldest : oldest.slice(0, staying);
    const last = going.at(-1)?.rev;
    if (last !== undefined) this.#compactTo(last);
    [this.#logRows, this.#logBytes] = [rows, bytes];
    return { removed: going.length, more: going.length === compactBatch, stats: this.stats() };
  }

  checkpoint(): FileStats {
    this.#db.exec('PRAGMA wal_checkpoint(PASSIVE)');
    this.#aheadBytes = 0;
    return this.stats();
  }

  /** Returns some free pages to the file system. `more` means that the file still has too many. */
  vacuum(): { readonly more: boolean; readonly stats: FileStats } {
    const free = numberOf(this.#db, 'PRAGMA freelist_count');
    const slack = Math.max(slackPages, numberOf(this.#db, 'PRAGMA page_count') * slackShare);
    const going = Math.min(vacuumPages, Math.floor(free - slack));
    if (going > 0) this.#db.exec(`PRAGMA incremental_vacuum(${going})`);
    this.#db.exec('PRAGMA wal_checkpoint(TRUNCATE)');
    this.#aheadBytes = 0;
    return { more: going === vacuumPages, stats: this.stats() };
  }

  /**
   * Persists the exact revision and the store time, so that the next start need not skip the
   * reserved revisions.
   */
  close(revision: number, ts: number): FileStats {
    this.#transaction('disk', () => {
      this.#putMeta.run('reserved', revision);
      this.#putMeta.run('ts', ts);
    });
    this.vacuum();
    const stats = this.stats();
    this.#db.close();
    return stats;
  }

  stats(): FileStats {
    return {
      objects: this.#objects,
      logRows: this.#logRows,
      logBytes: this.#logBytes,
      fileBytes: sizeOf(this.#path) ?? 0,
      walBytes: sizeOf(`${this.#path}-wal`) ?? 0,
      aheadBytes: this.#aheadBytes,
    };
  }

  /** Writes one change; returns the number of bytes added to the log. */
  #writeRow({ rev, key, op, value, ts }: ChangeRow): number {
    const row = this.#addToLog.get(rev, key, op, op === 'DELETED' ? value : null, ts);
    if (op === 'DELETED') this.#removeObject.run(key);
    else this.#putObject.run(key, rev, value);
    return Number(row?.['bytes'] ?? 0);
  }

  #compactTo(upTo: number): void {
    this.#transaction('system', () => {
      this.#db.prepare('DELETE FROM log WHERE rev <= ?').run(upTo);
      this.#putMeta.run('compacted', upTo);
    });
  }

  #transaction(safety: SyncLevel, work: () => void): void {
    this.#setSafety(safety);
    this.#db.exec('BEGIN IMMEDIATE');
    try {
      work();
      this.#db.exec('COMMIT');
    } catch (error) {
      // Rolls back only an open transaction, because SQLite rolls back automatically after some
      // failures.
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK');
      throw error;
    }
  }

  #setSafety(safety: SyncLevel): void {
    if (safety === this.#safety) return;
    this.#db.exec(`PRAGMA synchronous = ${safety === 'disk' ? 'FULL' : 'NORMAL'}`);
    this.#safety = safety;
  }

  #meta(key: string): number {
    return Number(this.#db.prepare('SELECT value FROM meta WHERE key = ?').get(key)?.['value'] ?? 0);
  }
}

/**
 * Estimates by how many bytes a change grows the write-ahead log: pages of three B-trees and the
 * object twice.
 */
function estimatedWalBytes(value: string): number {
  return 3 * 4096 + 2 * value.length;
}

const logRowBytes = 'coalesce(octet_length(value), 0) + coalesce(octet_length(before), 0)';

/** Takes as many rows as fit in one message, but at least one. */
function page<R extends { readonly value: string | null; readonly before?: string | null }>(
  rows: Iterable<R>,
): readonly R[] {
  const taken: R[] = [];
  let length = 0;
  for (const row of rows) {
    taken.push(row);
    length += (row.value?.length ?? 0) + (row.before?.length ?? 0);
    if (taken.length >= pageRows || length >= pageLength) break;
  }
  return taken;
}
