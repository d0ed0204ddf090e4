import { LruMap } from '../lru.ts';
import type { LogRecord } from './format.ts';

interface Seen {
  readonly count: number;
  readonly lastMs: number;
  readonly toldMs: number;
}

/** So many are told one by one. */
const toldEach = 8;
/** One that goes on is told as often as this at least. */
const longestMs = 10 * 60_000;
/** One that was not said for so long is a new one. */
const forgottenMs = 5 * 60_000;
const mostKept = 512;

/**
 * Whoever tries again and again complains as often, and buries what others say. The first complaints pass; of those that
 * are the same to the last letter only some do, ever fewer, and say how many there were.
 */
export class Repeats {
  readonly #seen = new LruMap<string, Seen>({ capacity: mostKept });

  /** The record as it is to be told; undefined when it is not. */
  pass(record: LogRecord, nowMs: number): LogRecord | undefined {
    if (record.severity === 'info') return record;
    const key = JSON.stringify([record.severity, record.message, record.error, record.fields]);
    const before = this.#seen.get(key);
    const isNew = before === undefined || nowMs - before.lastMs >= forgottenMs;
    const count = isNew ? 1 : before.count + 1;
    const isTold =
      isNew || count <= toldEach || Number.isInteger(Math.log2(count)) || nowMs - before.toldMs >= longestMs;
    this.#seen.set(key, { count, lastMs: nowMs, toldMs: isTold ? nowMs : before.toldMs });
    if (!isTold) return undefined;
    return count <= toldEach ? record : { ...record, fields: { ...record.fields, times: count } };
  }
}
