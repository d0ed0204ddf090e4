export type LogStream = 'stdout' | 'stderr';

/** What a log says of a line of its file besides the text. */
export interface LineHead {
  readonly time: LogTime;
  readonly stream: LogStream;
  /** A part goes on in the next line of the file. */
  readonly is: 'end' | 'part';
  /** The time as it is shown to users: nine digits behind the seconds, in the zone of the log. */
  readonly stamp: string;
}

/** No head of a line is longer; what has none in so many bytes is no line of a log. */
export const maxHeadBytes = 256;
/** A line in Docker's format must be read whole, so it cannot be of any length. */
export const maxJsonLineBytes = 1 << 20;

const head =
  /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:[.,](\d+))?(Z|[+-]\d\d:\d\d) (stdout|stderr) ([^ :\n]*)(?::[^ \n]*)? /;

export interface ParsedHead extends LineHead {
  /** Where the text begins. */
  readonly length: number;
}

/** Reads heads of lines in CRI's format, `<time> stdout|stderr P|F[:tags] <text>`. Neighbours mostly share their second. */
export class HeadParser {
  #moment = '';
  #seconds: number | undefined;

  /** Undefined when the bytes do not begin with a whole head. */
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
  /** Without the end of the line. */
  readonly text: Uint8Array;
}

/** A line in Docker's format; one whose text does not end in a newline goes on in the next. */
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

/** A moment to the nanosecond. */
export interface LogTime {
  /** Whole seconds since 1970. */
  readonly seconds: number;
  readonly nanos: number;
}

const written = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:[.,](\d+))?(Z|[+-]\d\d:\d\d)$/;

/** As logs and clients write it (RFC 3339, any number of digits behind the seconds); undefined for what is no time. */
export function parseLogTime(text: string): LogTime | undefined {
  const [, moment, fraction = '', zone] = written.exec(text) ?? [];
  if (moment === undefined || zone === undefined) return undefined;
  const seconds = secondsOf(moment);
  const offset = offsetOf(zone);
  if (seconds === undefined || offset === undefined) return undefined;
  return { seconds: seconds - offset, nanos: nanosOf(fraction) };
}

/** Of a date and time without a zone; undefined for a day that is in no calendar. */
export function secondsOf(moment: string): number | undefined {
  const ms = Date.parse(`${moment}Z`);
  if (Number.isNaN(ms) || new Date(ms).toISOString().slice(0, 19) !== moment) return undefined;
  return ms / 1_000;
}

/** Seconds east of Greenwich; undefined for what is no zone. */
export function offsetOf(zone: string): number | undefined {
  if (zone === 'Z') return 0;
  const hours = Number(zone.slice(1, 3));
  const minutes = Number(zone.slice(4, 6));
  if (hours > 24 || minutes > 59) return undefined;
  return (zone.startsWith('-') ? -1 : 1) * (hours * 3_600 + minutes * 60);
}

export function nanosOf(fraction: string): number {
  return Number(fraction.slice(0, 9).padEnd(9, '0'));
}

export function isBefore(one: LogTime, other: LogTime): boolean {
  return one.seconds === other.seconds ? one.nanos < other.nanos : one.seconds < other.seconds;
}

/** What is told of each line of a log's file that is one; others are passed over. */
export interface LineSink {
  begin(head: LineHead): void;
  /** The text in as many pieces as it comes; only good during the call. */
  text(bytes: Uint8Array): void;
  /** `position` is where the next line begins. A line is cut when its file ends before it does. */
  end(how: 'whole' | 'cut', position: number): void;
}

const newline = 0x0a;
const brace = 0x7b;
const nothing = new Uint8Array(0);

/** Finds the lines in the bytes of a log, whatever their length; keeps no more than the head of a line. */
export class LineSplitter {
  readonly #sink: LineSink;
  readonly #heads = new HeadParser();
  #state: 'head' | 'text' | 'json' | 'bad' = 'head';
  #carry: Uint8Array = nothing;
  /** Of the next byte to come. */
  #position: number;

  constructor(sink: LineSink, position = 0) {
    this.#sink = sink;
    this.#position = position;
  }

  /** Whether a line has begun that has not ended. */
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

  /** The file ends here; the next bytes are of another one. */
  endFile(): void {
    this.#endLine('cut');
    this.#position = 0;
  }

  /** More of a line. */
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
