import { type LogTime, nanosOf, offsetOf, parseLogTime, secondsOf } from './log-time.ts';

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
