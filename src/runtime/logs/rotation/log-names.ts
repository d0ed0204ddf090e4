import type { LogFile } from './rotation-files.ts';

/** A file of the directory of a container's logs, by what its name says. */
export interface NamedLog extends LogFile {
  /** The restart count of the instance that wrote it. */
  readonly instance: number;
  /** When it was rotated away, as in its name; empty for the one that is, or was last, written to. */
  readonly stamp: string;
  readonly form: 'plain' | 'gzip' | 'unfinished';
}

const shape = /^(\d{1,9})\.log(?:\.(\d{8}-\d{6}))?(\.gz|\.tmp)?$/;

/** `N.log`, `N.log.YYYYMMDD-HHMMSS`, the same as `.gz`, or as `.tmp` while it is compressed; undefined for anything else. */
export function readLogName(file: LogFile): NamedLog | undefined {
  const [, digits, stamp = '', ending = ''] = shape.exec(file.name) ?? [];
  if (digits === undefined || (stamp === '' && ending !== '')) return undefined;
  const form = ending === '' ? 'plain' : ending === '.gz' ? 'gzip' : 'unfinished';
  return { ...file, instance: Number(digits), stamp, form };
}

/** In the order they were written. */
export function oldestFirst(one: NamedLog, other: NamedLog): number {
  if (one.instance !== other.instance) return one.instance - other.instance;
  if (one.stamp === other.stamp) return 0;
  if (one.stamp === '' || other.stamp === '') return one.stamp === '' ? 1 : -1;
  return one.stamp < other.stamp ? -1 : 1;
}

const second = 1_000;

/**
 * The time as the name of a rotated log has it, in the machine's time zone; later than the newest there is. A log that
 * is rotated twice in a second, or while the clock goes back, is ahead of the clock for a while: order and the shape of
 * the names are worth more to whoever reads the logs than the exact second.
 */
export function nextStamp(now: number, newest: string | undefined): string {
  const current = formatStamp(now - new Date(now).getTimezoneOffset() * 60 * second);
  if (newest === undefined || newest < current) return current;
  return formatStamp(parseStamp(newest) + second);
}

function formatStamp(civilMs: number): string {
  const [date = '', time = ''] = new Date(civilMs).toISOString().slice(0, 19).split('T');
  return `${date.replaceAll('-', '')}-${time.replaceAll(':', '')}`;
}

function parseStamp(stamp: string): number {
  const part = (from: number, length = 2) => Number(stamp.slice(from, from + length));
  return Date.UTC(part(0, 4), part(4) - 1, part(6), part(9), part(11), part(13));
}
