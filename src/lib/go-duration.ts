import { KubelingError } from './errors.ts';

/**
 * Durations as Kubernetes writes them: `300ms`, `1h30m`, `1m0s`. Exact in nanoseconds; callers use
 * milliseconds, which are exact to the nanosecond up to about ninety days.
 */

const nanosPerMs = 1_000_000n;
const nanosPer: Readonly<Record<string, bigint>> = {
  ns: 1n,
  us: 1_000n,
  µs: 1_000n, // U+00B5, the micro sign
  μs: 1_000n, // U+03BC, the Greek letter
  ms: nanosPerMs,
  s: 1_000_000_000n,
  m: 60_000_000_000n,
  h: 3_600_000_000_000n,
};
const durationText = /^[-+]?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+$/;
const eachPart = /(\d*)(?:\.(\d*))?(ns|us|µs|μs|ms|s|m|h)/g;
/** The maximum length of the text of a duration; longer texts are mistakes or attacks. */
const maxTextLength = 128;
const maxNanos = 2n ** 63n - 1n;
const minNanos = -(2n ** 63n);

/**
 * Parses a duration to nanoseconds; undefined when the text is not a duration or exceeds 64 bits.
 */
export function tryParseDuration(text: string): bigint | undefined {
  if (/^[-+]?0$/.test(text)) return 0n;
  if (text.length > maxTextLength || !durationText.test(text)) return undefined;
  let total = 0n;
  for (const part of text.matchAll(eachPart)) total += partNanos(part[1] ?? '', part[2] ?? '', part[3] ?? '');
  if (text.startsWith('-')) total = -total;
  return total > maxNanos || total < minNanos ? undefined : total;
}

function partNanos(integer: string, fraction: string, unit: string): bigint {
  const per = nanosPer[unit] ?? 0n;
  const extra = fraction === '' ? 0n : (BigInt(fraction) * per) / 10n ** BigInt(fraction.length);
  return BigInt(integer === '' ? '0' : integer) * per + extra;
}

export function tryParseDurationMs(text: string): number | undefined {
  const nanos = tryParseDuration(text);
  return nanos === undefined ? undefined : durationMs(nanos);
}

/** Parses a duration; throws DURATION_INVALID. */
export function parseDurationMs(text: string): number {
  const ms = tryParseDurationMs(text);
  if (ms !== undefined) return ms;
  throw new KubelingError(
    'DURATION_INVALID',
    `Cannot read a duration as it must be a number with a unit such as 300ms, 10s or 1h30m: current value is ${JSON.stringify(text.slice(0, maxTextLength))}`,
  );
}

/** Converts nanoseconds to milliseconds with up to six decimals. */
export function durationMs(nanos: bigint): number {
  return Number(nanos / nanosPerMs) + Number(nanos % nanosPerMs) / 1e6;
}

export function durationNanos(ms: number): bigint {
  const truncated = Math.trunc(ms);
  return BigInt(truncated) * nanosPerMs + BigInt(Math.round((ms - truncated) * 1e6));
}

export function formatDurationMs(ms: number): string {
  return formatDuration(durationNanos(ms));
}

/** Formats a duration in the canonical form: `0s`, `1.5ms`, `20s`, `1m0s`, `4h0m0s`. */
export function formatDuration(nanos: bigint): string {
  if (nanos === 0n) return '0s';
  const sign = nanos < 0n ? '-' : '';
  const size = nanos < 0n ? -nanos : nanos;
  if (size < 1_000n) return `${sign}${size}ns`;
  if (size < nanosPerMs) return `${sign}${decimal(size, 3)}µs`;
  if (size < 1_000_000_000n) return `${sign}${decimal(size, 6)}ms`;
  const minutes = size / 60_000_000_000n;
  const seconds = `${decimal(size % 60_000_000_000n, 9)}s`;
  if (minutes === 0n) return `${sign}${seconds}`;
  if (minutes < 60n) return `${sign}${minutes}m${seconds}`;
  return `${sign}${minutes / 60n}h${minutes % 60n}m${seconds}`;
}

/** Divides `value` by ten to the power of `places`, without trailing zeros. */
function decimal(value: bigint, digits: number): string {
  const scale = 10n ** BigInt(digits);
  const fraction = (value % scale).toString().padStart(digits, '0').replace(/0+$/, '');
  return fraction === '' ? `${value / scale}` : `${value / scale}.${fraction}`;
}
