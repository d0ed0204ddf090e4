import { getCallSites } from 'node:util';
import type { Clock } from '../clock.ts';
import { describeError, KubelingError, kindOf } from '../errors.ts';
import { LruMap } from '../lru.ts';
import { Ring } from '../ring.ts';
import { type Caller, formatRecord, type LogFormat, type LogRecord, type Severity } from './format.ts';
import { type LogFields, type PlainFields, plainFields, plainText } from './values.ts';
import { Verbosity } from './verbosity.ts';

/**
 * Logs structured messages. No method ever throws or blocks. Secrets are removed from messages and
 * fields, but callers should log names and numbers, not contents.
 */
export interface Logger {
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  /** Logs an error; its message, causes, code and details are part of the line. */
  error(message: string, error: unknown, fields?: LogFields): void;
  /**
   * Returns a logger for this verbosity; undefined if the verbosity is disabled, so that
   * `log.v(4)?.info(…)` then costs nothing.
   */
  v(level: number): Pick<Logger, 'info'> | undefined;
  /**
   * A child logger with these fields on every line. The values are read at this call, not when a
   * line is logged.
   */
  child(fields: LogFields): Logger;
}

/** Receives formatted lines, without their line feed. Must not block and should not throw. */
export interface LogSink {
  write(line: string): void;
}

export interface LoggerOptions {
  readonly clock: Clock;
  readonly sink: LogSink;
  readonly format: LogFormat;
  readonly verbosity: Verbosity;
  readonly pid?: number;
}

export function createLogger(options: LoggerOptions): Logger {
  const pid = options.pid ?? process.pid;
  const repeats = new RepeatFilter();
  const accept = (record: LogRecord) => {
    const passed = repeats.pass(record, options.clock.monotonicMs());
    if (passed !== undefined) options.sink.write(formatRecord(options.format, pid, passed));
  };
  return new RecordLogger({ clock: options.clock, verbosity: options.verbosity, deliver: accept }, {});
}

export interface CollectedLogs {
  readonly logger: Logger;
  readonly records: Ring<LogRecord>;
}

/** A logger for tests that stores the newest records before they are formatted. */
export function collectLogs(clock: Clock, verbosity: Verbosity = new Verbosity(10)): CollectedLogs {
  const records = new Ring<LogRecord>(10_000);
  return {
    logger: new RecordLogger({ clock, verbosity, deliver: (record) => records.push(record) }, {}),
    records,
  };
}

interface Destination {
  readonly clock: Clock;
  readonly verbosity: Verbosity;
  readonly deliver: (record: LogRecord) => void;
}

class RecordLogger implements Logger {
  readonly #to: Destination;
  readonly #bound: PlainFields;

  constructor(to: Destination, bound: PlainFields) {
    this.#to = to;
    this.#bound = bound;
  }

  info(message: string, fields?: LogFields): void {
    this.#write({ severity: 'info', level: 0, message, fields, caller: callerAt(1) });
  }

  warn(message: string, fields?: LogFields): void {
    this.#write({ severity: 'warning', level: 0, message, fields, caller: callerAt(1) });
  }

  error(message: string, error: unknown, fields?: LogFields): void {
    this.#write({ severity: 'error', level: 0, message, fields, caller: callerAt(1), thrown: error });
  }

  v(level: number): Pick<Logger, 'info'> | undefined {
    if (!this.#to.verbosity.shows(level, () => callerAt(3))) return undefined;
    return {
      info: (message, fields) =>
        this.#write({ severity: 'info', level, message, fields, caller: callerAt(1) }),
    };
  }

  child(fields: LogFields): Logger {
    return new RecordLogger(this.#to, { ...this.#bound, ...plainFields(fields) });
  }

  #write(line: UnstampedRecord): void {
    try {
      this.#to.deliver({
        severity: line.severity,
        level: line.level,
        time: this.#to.clock.now(),
        caller: line.caller,
        message: plainText(String(line.message)),
        error: line.thrown === undefined ? undefined : errorFields(line.thrown),
        fields: line.fields === undefined ? this.#bound : { ...this.#bound, ...plainFields(line.fields) },
      });
    } catch {
      // An exception while logging must not reach the caller.
    }
  }
}

interface UnstampedRecord {
  readonly severity: Severity;
  readonly level: number;
  readonly message: string;
  readonly fields: LogFields | undefined;
  readonly caller: Caller;
  readonly thrown?: unknown;
}

/** A bug is logged with its stack, any other error with its description. */
function errorFields(thrown: unknown): PlainFields {
  const err = describeError(thrown);
  try {
    const { code, details } = thrown instanceof KubelingError ? thrown : {};
    const hasDetails = details !== undefined && Object.keys(details).length > 0;
    const isBug = thrown instanceof Error && kindOf(thrown) === 'Bug';
    return plainFields({
      err,
      errCode: code,
      errDetails: hasDetails ? details : undefined,
      errStack: isBug ? thrown.stack : undefined,
    });
  } catch {
    return plainFields({ err });
  }
}

const unknownCaller: Caller = { path: 'unknown', line: 0 };

/**
 * The source position of a caller `depth` levels up the stack: 1 is the caller of the function that
 * calls `callerAt`. Costs a few microseconds, so it is called only for lines that are written.
 */
function callerAt(depth: number): Caller {
  const site = getCallSites(depth + 2)[depth + 1];
  return site === undefined ? unknownCaller : { path: site.scriptName, line: site.lineNumber };
}

interface RepeatedRecord {
  readonly count: number;
  readonly lastMs: number;
  readonly loggedMs: number;
}

/** The number of identical warnings that are logged individually. */
const logEveryNth = 8;
/** The maximum time between two logged repetitions of a continuing warning. */
const maxQuietMs = 10 * 60_000;
/** A warning that did not occur for this long counts as new. */
const forgetAfterMs = 5 * 60_000;
const maxRemembered = 512;

/**
 * Suppresses repeated warnings, because a task that keeps retrying would bury other lines. The
 * first identical warnings are logged; later ones ever more rarely, with their number.
 */
export class RepeatFilter {
  readonly #records = new LruMap<string, RepeatedRecord>({ capacity: maxRemembered });

  /** Returns the record to log; undefined when it is suppressed. */
  pass(record: LogRecord, nowMs: number): LogRecord | undefined {
    if (record.severity === 'info') return record;
    const key = JSON.stringify([record.severity, record.message, record.error, record.fields]);
    const before = this.#records.get(key);
    const isNew = before === undefined || nowMs - before.lastMs >= forgetAfterMs;
    const count = isNew ? 1 : before.count + 1;
    const isDuplicate =
      isNew ||
      count <= logEveryNth ||
      Number.isInteger(Math.log2(count)) ||
      nowMs - before.loggedMs >= maxQuietMs;
    this.#records.set(key, { count, lastMs: nowMs, loggedMs: isDuplicate ? nowMs : before.loggedMs });
    if (!isDuplicate) return undefined;
    return count <= logEveryNth ? record : { ...record, fields: { ...record.fields, times: count } };
  }
}

export interface LogRate {
  readonly records: number;
  readonly perMs: number;
}

/**
 * Logs at most a fixed number of errors in each period, so that unauthorized callers cannot fill
 * the log. The first error logged in a later period contains the number of suppressed errors.
 */
export function rateLimitedErrors(
  logger: Pick<Logger, 'error'>,
  clock: Pick<Clock, 'monotonicMs'>,
  { records, perMs }: LogRate,
): Pick<Logger, 'error'> {
  let startMs = Number.NEGATIVE_INFINITY;
  let logged = 0;
  let leftOut = 0;
  return {
    error(message, error, fields) {
      const nowMs = clock.monotonicMs();
      if (nowMs - startMs >= perMs) {
        startMs = nowMs;
        logged = 0;
      }
      if (logged >= records) {
        leftOut++;
        return;
      }
      logged++;
      logger.error(message, error, leftOut === 0 ? fields : { ...fields, notLogged: leftOut });
      leftOut = 0;
    },
  };
}
