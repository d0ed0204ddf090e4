import { type NamedLog, oldestFirst } from './log-names.ts';

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

export interface TidyPlan {
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
export function tidyPlan(all: readonly NamedLog[], owner: LogOwner, policy: RotationPolicy): TidyPlan {
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
export function expendable(logs: readonly NamedLog[], owner: LogOwner): readonly NamedLog[] {
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
  const candidates = expendable(logs, owner);
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
