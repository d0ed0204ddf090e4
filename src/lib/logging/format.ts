import type { Instant } from '../clock.ts';
import type { Plain, PlainFields } from './values.ts';

export type LogFormat = 'text' | 'json';
export type Severity = 'info' | 'warning' | 'error';

/** A log record before formatting. Secrets are already removed. */
export interface LogRecord {
  readonly severity: Severity;
  /** The verbosity at which the record is logged; 0 is always logged. */
  readonly level: number;
  readonly time: Instant;
  readonly caller: Caller;
  readonly message: string;
  /** The details of the logged error; undefined for a record without error. */
  readonly error: PlainFields | undefined;
  readonly fields: PlainFields;
}

export interface Caller {
  /** The source file path with forward slashes, as far as the stack contains it. */
  readonly path: string;
  readonly line: number;
}

/** Formats a record as one line without its line feed. The text format contains the PID. */
export function formatRecord(format: LogFormat, pid: number, record: LogRecord): string {
  return format === 'text' ? formatText(pid, record) : formatJson(record);
}

const letters = { info: 'I', warning: 'W', error: 'E' } as const;

/**
 * The klog format: `I0102 15:04:05.000000 12345 file.ts:7] "message" key="value"`, in local time.
 */
function formatText(pid: number, record: LogRecord): string {
  const { caller, severity, time } = record;
  const head = `${letters[severity]}${localTime(time)} ${String(pid).padStart(7)} ${lastParts(caller.path, 1)}:${caller.line}]`;
  const pairs = Object.entries({ ...record.error, ...withoutClashes(record.error ?? {}, record.fields) });
  const shown = pairs.map(([key, value]) => `${textKey(key)}=${textValue(value)}`);
  return [head, quote(record.message), ...shown].join(' ');
}

/**
 * Renames log fields that would overwrite a key of the record, such as the message, by appending an
 * underscore.
 */
function withoutClashes(own: object, fields: PlainFields): PlainFields {
  const entries = Object.entries(fields);
  return Object.fromEntries(
    entries.map(([key, value]) => [Object.hasOwn(own, key) ? `${key}_` : key, value]),
  );
}

function localTime(time: Instant): string {
  const at = new Date(time);
  const two = (value: number) => String(value).padStart(2, '0');
  const day = two(at.getMonth() + 1) + two(at.getDate());
  const micros = `${String(at.getMilliseconds()).padStart(3, '0')}000`;
  return `${day} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}.${micros}`;
}

function textKey(key: string): string {
  return /^[\w./-]+$/.test(key) ? key : quote(key);
}

function textValue(value: Plain): string {
  if (typeof value === 'string') return quote(value);
  return typeof value === 'object' && value !== null ? safeJson(value) : String(value);
}

/**
 * Only letters, marks, numbers, punctuation, symbols and the plain space are printed unescaped:
 * other characters could control a terminal.
 */
const unprintable = /["\\]|[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/gu;
const shortEscapes: Readonly<Record<string, string>> = {
  '"': '\\"',
  '\\': '\\\\',
  '\u0007': '\\a',
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\v': '\\v',
};

function quote(text: string): string {
  return `"${text.replace(unprintable, escapeCharacter)}"`;
}

function escapeCharacter(character: string): string {
  const short = shortEscapes[character];
  if (short !== undefined) return short;
  const code = character.codePointAt(0) ?? 0;
  const hex = code.toString(16);
  if (code < 0x80) return `\\x${hex.padStart(2, '0')}`;
  return code <= 0xffff ? `\\u${hex.padStart(4, '0')}` : `\\U${hex.padStart(8, '0')}`;
}

function formatJson(record: LogRecord): string {
  const { caller, error, severity } = record;
  const own = {
    ts: record.time,
    caller: `${lastParts(caller.path, 2)}:${caller.line}`,
    msg: record.message,
    ...(error ?? (severity === 'error' ? { err: null } : { v: record.level })),
    ...(severity === 'warning' ? { severity } : {}),
  };
  return safeJson({ ...own, ...withoutClashes(own, record.fields) });
}

/**
 * Formats JSON without characters that could control a terminal: these occur only inside strings,
 * where they can be escaped.
 */
function safeJson(value: Plain): string {
  return JSON.stringify(value).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (character) =>
    Array.from({ length: character.length }, (_, at) => character.charCodeAt(at))
      .map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`)
      .join(''),
  );
}

function lastParts(path: string, count: number): string {
  return path.split('/').slice(-count).join('/');
}
