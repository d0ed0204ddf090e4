import type { LogFile } from './rotation-files.ts';

export interface RotationPolicy {
  /** A log this large is rotated. */
  readonly maxBytes: number;
  /** Files of one container, the one that is written to included; at least 2. */
  readonly maxFiles: number;
}

/** What is known of the container whose directory is tidied. */
export interface LogOwner {
  /** The instance that runs; undefined when none does. */
  readonly running: number | undefined;
  /** Instances whose last log somebody may still ask for: those the runtime knows. */
  readonly known: ReadonlySet<number>;
}

export interface LogCleanupPlan {
  /** Names, oldest first. */
  readonly remove: readonly string[];
  readonly compress: readonly string[];
}

/**
 * What to do about the files of one container, all its instances together, so that they hold at most as many files and
 * bytes as one of them may. The log that is written to is left alone, and so are the last ones of instances that the
 * runtime knows. What a running container wrote before its current log stays readable as it is: whoever reads may be
 * at its end, and the runtime may have a last line for it.
 */
export function planLogCleanup(
  all: readonly NamedLog[],
  owner: LogOwner,
  policy: RotationPolicy,
): LogCleanupPlan {
  const compressed = new Set(all.filter(({ form }) => form === 'gzip').map(({ name }) => name));
  const isWaste = ({ form, name }: NamedLog) => form === 'unfinished' || compressed.has(`${name}.gz`);
  const logs = all.filter((log) => !isWaste(log)).sort(oldestFirst);
  const newest = logs.findLast(({ instance, stamp }) => instance === owner.running && stamp !== '');
  const surplus = new Set(surplusOf(logs, newest, owner, policy));
  return {
    remove: [...all.filter(isWaste), ...surplus].map(({ name }) => name),
    compress: logs
      .filter((log) => log.stamp !== '' && log.form === 'plain' && log !== newest && !surplus.has(log))
      .map(({ name }) => name),
  };
}

/** Those that may go when there is no room, oldest first. */
export function removableLogs(logs: readonly NamedLog[], owner: LogOwner): readonly NamedLog[] {
  const sorted = logs.toSorted(oldestFirst);
  // Its number tells how often the container was restarted when nobody else knows any more.
  const last = sorted.at(-1)?.instance;
  const isKept = ({ instance, stamp }: NamedLog) =>
    stamp === '' && (instance === owner.running || instance === last || owner.known.has(instance));
  return sorted.filter((log) => !isKept(log));
}

function surplusOf(
  logs: readonly NamedLog[],
  newest: NamedLog | undefined,
  owner: LogOwner,
  { maxBytes, maxFiles }: RotationPolicy,
): readonly NamedLog[] {
  const candidates = removableLogs(logs, owner);
  const written = logs.find(({ instance, stamp }) => instance === owner.running && stamp === '');
  const kept = logs.filter((log) => log !== written && !candidates.includes(log));
  let files = candidates.length;
  let bytes = [...kept, ...candidates].reduce((sum, log) => sum + log.bytes, 0);
  const surplus: NamedLog[] = [];
  for (const log of candidates) {
    if (files <= maxFiles - 1 && bytes <= maxBytes * (maxFiles - 1)) break;
    if (log === newest) continue;
    surplus.push(log);
    files--;
    bytes -= log.bytes;
  }
  return surplus;
}

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
