export type LogStream = 'stdout' | 'stderr';

/** The metadata of a line in a log file. */
export interface LineHead {
  readonly time: LogTime;
  readonly stream: LogStream;
  /**
   * `end`: the text is the end of a line; `part`: the line continues in the next line of the file.
   */
  readonly is: 'end' | 'part';
  /** The timestamp as shown: nine fractional digits, in the time zone of the log. */
  readonly stamp: string;
}

/** The maximum length of the head of a log line; a line with a longer prefix is skipped. */
export const maxHeadBytes = 256;
/** The maximum length of a line in Docker's format, which must be parsed completely. */
export const maxJsonLineBytes = 1 << 20;

const head =
  /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:[.,](\d+))?(Z|[+-]\d\d:\d\d) (stdout|stderr) ([^ :\n]*)(?::[^ \n]*)? /;

export interface ParsedHead extends LineHead {
  /** The offset of the text after the head. */
  readonly length: number;
}

/**
 * Parses the heads of log lines in the CRI format, `<time> stdout|stderr P|F[:tags] <text>`. Caches
 * the parsed second, because adjacent lines mostly share it.
 */
export class HeadParser {
  #moment = '';
  #seconds: number | undefined;

  /** Parses the head of a log line; undefined unless the bytes begin with a complete head. */
  parse(bytes: Uint8Array): ParsedHead | undefined {
    const text = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.length, maxHeadBytes)).toString(
      'latin1',
    );
    const [whole, moment = '', fraction = '', zone = '', stream, tag] = head.exec(text) ?? [];
    if (whole === undefined) return undefined;
    if (moment !== this.#moment) {
      this.#moment = moment;
      this.#seconds = secondsOf(moment);
    }
    const offset = offsetOf(zone);
    if (this.#seconds === undefined || offset === undefined) return undefined;
    return {
      length: whole.length,
      time: { seconds: this.#seconds - offset, nanos: nanosOf(fraction) },
      stream: stream === 'stderr' ? 'stderr' : 'stdout',
      is: tag === 'P' ? 'part' : 'end',
      stamp: stampOf(moment, fraction, zone),
    };
  }
}

function stampOf(moment: string, fraction: string, zone: string): string {
  return `${moment}.${fraction.slice(0, 9).padEnd(9, '0')}${/^.00:00$/.test(zone) ? 'Z' : zone}`;
}

export interface JsonLine extends LineHead {
  /** The text of the line without the newline. */
  readonly text: Uint8Array;
}

/** Parses a line in Docker's format; a text without a newline continues in the next line. */
export function parseJsonLine(bytes: Uint8Array): JsonLine | undefined {
  const { log, stream, time } = asRecord(bytes);
  if (typeof log !== 'string' || typeof time !== 'string') return undefined;
  if (stream !== 'stdout' && stream !== 'stderr') return undefined;
  const at = parseLogTime(time);
  if (at === undefined) return undefined;
  const [, moment = '', fraction = '', zone = ''] = /^(.{19})(?:[.,](\d+))?(\D.*)$/.exec(time) ?? [];
  const isEnd = log.endsWith('\n');
  const text = Buffer.from(isEnd ? log.slice(0, -1) : log);
  return { time: at, stream, is: isEnd ? 'end' : 'part', stamp: stampOf(moment, fraction, zone), text };
}

function asRecord(bytes: Uint8Array): Readonly<Record<'log' | 'stream' | 'time', unknown>> {
  const nothing = { log: undefined, stream: undefined, time: undefined };
  try {
    const value: unknown = JSON.parse(Buffer.from(bytes).toString());
    return typeof value === 'object' && value !== null ? { ...nothing, ...value } : nothing;
  } catch {
    return nothing;
  }
}

/** A time with nanosecond precision. */
export interface LogTime {
  /** Whole seconds since the Unix epoch. */
  readonly seconds: number;
  readonly nanos: number;
}

const written = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:[.,](\d+))?(Z|[+-]\d\d:\d\d)$/;

/** Parses RFC 3339 with any number of fractional digits; undefined for an invalid time. */
export function parseLogTime(text: string): LogTime | undefined {
  const [, moment, fraction = '', zone] = written.exec(text) ?? [];
  if (moment === undefined || zone === undefined) return undefined;
  const seconds = secondsOf(moment);
  const offset = offsetOf(zone);
  if (seconds === undefined || offset === undefined) return undefined;
  return { seconds: seconds - offset, nanos: nanosOf(fraction) };
}

/**
 * Returns the seconds since the epoch of a date and time without zone; undefined for an invalid
 * date.
 */
function secondsOf(moment: string): number | undefined {
  const ms = Date.parse(`${moment}Z`);
  if (Number.isNaN(ms) || new Date(ms).toISOString().slice(0, 19) !== moment) return undefined;
  return ms / 1_000;
}

/** Returns the offset from UTC in seconds; undefined for an invalid zone. */
function offsetOf(zone: string): number | undefined {
  if (zone === 'Z') return 0;
  const hours = Number(zone.slice(1, 3));
  const minutes = Number(zone.slice(4, 6));
  if (hours > 24 || minutes > 59) return undefined;
  return (zone.startsWith('-') ? -1 : 1) * (hours * 3_600 + minutes * 60);
}

function nanosOf(fraction: string): number {
  return Number(fraction.slice(0, 9).padEnd(9, '0'));
}

export function isBefore(one: LogTime, other: LogTime): boolean {
  return one.seconds === other.seconds ? one.nanos < other.nanos : one.seconds < other.seconds;
}

/** Receives the valid lines of a log file in order; invalid lines are not passed to it. */
export interface LineSink {
  begin(head: LineHead): void;
  /** Receives the text of a line in one or more pieces, valid during the call only. */
  text(bytes: Uint8Array): void;
  /**
   * Called at the end of a line; `position` is the offset of the next line. The line is `cut` when
   * its file ends before the newline.
   */
  end(how: 'whole' | 'cut', position: number): void;
}

const newline = 0x0a;
const brace = 0x7b;
const nothing = new Uint8Array(0);

/** Splits the bytes of a log into lines of any length; buffers only line heads. */
export class LineSplitter {
  readonly #sink: LineSink;
  readonly #heads = new HeadParser();
  #state: 'head' | 'text' | 'json' | 'bad' = 'head';
  #carry: Uint8Array = nothing;
  /** The offset of the next byte. */
  #position: number;

  constructor(sink: LineSink, position = 0) {
    this.#sink = sink;
    this.#position = position;
  }

  /** Whether the bytes end within a line. */
  get isInLine(): boolean {
    return this.#state !== 'head' || this.#carry.length > 0;
  }

  feed(chunk: Uint8Array): void {
    const base = this.#position;
    let at = 0;
    while (at < chunk.length) {
      const found = chunk.indexOf(newline, at);
      const end = found < 0 ? chunk.length : found;
      this.#position = base + end;
      this.#take(chunk.subarray(at, end));
      if (found >= 0) {
        this.#position++;
        this.#endLine('whole');
      }
      at = end + 1;
    }
  }

  /** Ends the current file; further bytes belong to another file. */
  endFile(): void {
    this.#endLine('cut');
    this.#position = 0;
  }

  #take(bytes: Uint8Array): void {
    if (this.#state === 'head') this.#takeHead(bytes);
    else if (this.#state === 'text') this.#sink.text(bytes);
    else if (this.#state === 'json') this.#takeJson(bytes);
  }

  #takeHead(bytes: Uint8Array): void {
    if ((this.#carry[0] ?? bytes[0]) === brace) {
      this.#state = 'json';
      this.#takeJson(bytes);
      return;
    }
    const kept = this.#carry.length;
    const all = kept === 0 ? bytes : Buffer.concat([this.#carry, bytes.subarray(0, maxHeadBytes - kept)]);
    const head = this.#heads.parse(all);
    if (head !== undefined) this.#begin(head, bytes.subarray(head.length - kept));
    else if (all.length >= maxHeadBytes) this.#state = 'bad';
    else this.#carry = Uint8Array.from(all);
  }

  #begin(head: ParsedHead, text: Uint8Array): void {
    this.#state = 'text';
    this.#sink.begin(head);
    if (text.length > 0) this.#sink.text(text);
  }

  #takeJson(bytes: Uint8Array): void {
    if (this.#carry.length + bytes.length > maxJsonLineBytes) this.#state = 'bad';
    else this.#carry = Buffer.concat([this.#carry, bytes]);
  }

  #endLine(how: 'whole' | 'cut'): void {
    if (this.#state === 'text') this.#sink.end(how, this.#position);
    else if (this.#state === 'json') this.#endJson();
    this.#state = 'head';
    this.#carry = nothing;
  }

  #endJson(): void {
    const line = parseJsonLine(this.#carry);
    if (line === undefined) return;
    this.#sink.begin(line);
    this.#sink.text(line.text);
    this.#sink.end('whole', this.#position);
  }
}
