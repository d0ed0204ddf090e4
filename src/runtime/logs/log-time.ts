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
