import type { LogFile } from './rotation-files.ts';

export interface RotationPolicy {
  /** The size at which a log is rotated. */
  readonly maxBytes: number;
  /** The maximum number of log files per container including the current one; at least 2. */
  readonly maxFiles: number;
}

/** The state of the container that owns a log directory. */
export interface LogOwner {
  /** The restart count of the running instance; undefined when none is running. */
  readonly running: number | undefined;
  /**
   * The restart counts of the instances that the runtime still has; clients can still request the
   * last log of these instances.
   */
  readonly known: ReadonlySet<number>;
}

export interface LogCleanupPlan {
  /** The names of the log files to remove and to compress, oldest first. */
  readonly remove: readonly string[];
  readonly compress: readonly string[];
}

/**
 * Plans the clean-up of one container's log directory, so that all its instances together stay
 * within the limits. The current log and the last logs of instances in the runtime are kept. The
 * newest rotated log of a running container stays uncompressed, because readers may be at its end
 * and the runtime may still write to it.
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

/** Returns the logs that can be removed on a full disk, oldest first. */
export function removableLogs(logs: readonly NamedLog[], owner: LogOwner): readonly NamedLog[] {
  const sorted = logs.toSorted(oldestFirst);
  // The log of the last instance is kept because its name contains the restart count, which is
  // needed when the runtime has no instance left.
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

/** A file in a container's log directory, parsed from its name. */
export interface NamedLog extends LogFile {
  /** The restart count of the instance that wrote the file. */
  readonly instance: number;
  /** The rotation time from the name; empty for a log that was not rotated. */
  readonly stamp: string;
  readonly form: 'plain' | 'gzip' | 'unfinished';
}

const shape = /^(\d{1,9})\.log(?:\.(\d{8}-\d{6}))?(\.gz|\.tmp)?$/;

/**
 * Parses the log names `N.log`, `N.log.YYYYMMDD-HHMMSS`, and the latter with `.gz` or, during
 * compression, `.tmp`; undefined for other names.
 */
export function readLogName(file: LogFile): NamedLog | undefined {
  const [, digits, stamp = '', ending = ''] = shape.exec(file.name) ?? [];
  if (digits === undefined || (stamp === '' && ending !== '')) return undefined;
  const form = ending === '' ? 'plain' : ending === '.gz' ? 'gzip' : 'unfinished';
  return { ...file, instance: Number(digits), stamp, form };
}

/** Orders log files by the time of writing. */
export function oldestFirst(one: NamedLog, other: NamedLog): number {
  if (one.instance !== other.instance) return one.instance - other.instance;
  if (one.stamp === other.stamp) return 0;
  if (one.stamp === '' || other.stamp === '') return one.stamp === '' ? 1 : -1;
  return one.stamp < other.stamp ? -1 : 1;
}

const second = 1_000;

/**
 * Returns the timestamp for the name of a rotated log, in local time and later than the timestamp
 * of the newest rotated log. After two rotations within a second, or when the clock was set back,
 * the timestamp is ahead of the clock, so that names keep their order and format.
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
