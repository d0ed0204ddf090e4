import { KubelingError } from './errors.ts';

/**
 * Resource amounts as Kubernetes writes them: `250m` cores, `64Mi`, `1.5G`, `12e6`. Stored exactly
 * as whole billionths, never as a floating-point number; smaller fractions are rounded away from
 * zero.
 */

/** The notation of the parsed text; formatting uses the same notation. */
export type QuantityFormat = 'DecimalSI' | 'BinarySI' | 'DecimalExponent';

export interface Quantity {
  readonly nanos: bigint;
  readonly format: QuantityFormat;
}

interface Suffix {
  readonly base: 2 | 10;
  readonly exponent: number;
  readonly format: QuantityFormat;
}

const nano = 1_000_000_000n;
const decimalSuffixes: readonly (readonly [string, number])[] = [
  ['n', -9],
  ['u', -6],
  ['m', -3],
  ['', 0],
  ['k', 3],
  ['M', 6],
  ['G', 9],
  ['T', 12],
  ['P', 15],
  ['E', 18],
];
const binarySuffixes: readonly (readonly [string, number])[] = [
  ['Ki', 10],
  ['Mi', 20],
  ['Gi', 30],
  ['Ti', 40],
  ['Pi', 50],
  ['Ei', 60],
];
/** The decimal units in ascending order; each divides the next one. */
const decimalUnits = decimalSuffixes.map(
  ([suffix, exponent]) => [suffix, 10n ** BigInt(exponent + 9)] as const,
);
const suffixes: ReadonlyMap<string, Suffix> = new Map<string, Suffix>([
  ...decimalSuffixes.map(([text, exponent]) => [text, { base: 10, exponent, format: 'DecimalSI' }] as const),
  ...binarySuffixes.map(([text, exponent]) => [text, { base: 2, exponent, format: 'BinarySI' }] as const),
]);
/** Computed once, because a power of BigInts takes longer than the rest of parsing a quantity. */
const powersOfTen = Array.from({ length: 28 }, (_, exponent) => 10n ** BigInt(exponent));
const shape = /^([-+]?)(\d+(?:\.\d*)?|\.\d+)((?:[numkMGTPE]|[KMGTPE]i)?|[eE][-+]?\d{1,5})$/;
/** Limits of the input, so that no text can request a number with a million digits. */
const maxTextLength = 256;
const maxExponent = 64;
/** The maximum of quantities with a binary suffix: the largest 64-bit integer. */
const largestBinary = (2n ** 63n - 1n) * nano;

/** Parses a quantity; undefined when the text is not a quantity. */
export function tryParseQuantity(text: string): Quantity | undefined {
  const parts = text.length > maxTextLength ? null : shape.exec(text);
  const suffix = parts === null ? undefined : readSuffix(parts[3] ?? '');
  if (parts === null || suffix === undefined) return undefined;
  const size = scaled(parts[2] ?? '0', suffix);
  const capped = suffix.format === 'BinarySI' && size > largestBinary ? largestBinary : size;
  // A fraction of a byte cannot be formatted with a binary suffix.
  const format = suffix.format === 'BinarySI' && capped > 0n && capped < nano ? 'DecimalSI' : suffix.format;
  return { nanos: parts[1] === '-' ? -capped : capped, format };
}

/** Parses a quantity; throws QUANTITY_INVALID. */
export function parseQuantity(text: string): Quantity {
  const quantity = tryParseQuantity(text);
  if (quantity !== undefined) return quantity;
  throw new KubelingError(
    'QUANTITY_INVALID',
    `Cannot read a quantity as it must be a number with an optional suffix such as 500m, 1.5, 64Mi or 2G: current value is ${JSON.stringify(text.slice(0, maxTextLength))}`,
  );
}

function readSuffix(text: string): Suffix | undefined {
  const known = suffixes.get(text);
  if (known !== undefined) return known;
  const exponent = Number(text.slice(1));
  return exponent > maxExponent ? undefined : { base: 10, exponent, format: 'DecimalExponent' };
}

/** The number times its suffix, in billionths, rounded up. */
function scaled(number: string, suffix: Suffix): bigint {
  const [integer = '', fraction = ''] = number.split('.');
  const digits = BigInt(`${integer}${fraction}` || '0');
  if (digits === 0n) return 0n;
  const tens = 9 - fraction.length + (suffix.base === 10 ? suffix.exponent : 0);
  const amount = suffix.base === 2 ? digits << BigInt(suffix.exponent) : digits;
  if (tens >= 0) return amount * (powersOfTen[tens] ?? 10n ** BigInt(tens));
  // The divisor exceeds the largest possible amount, so the result, rounded up, is one billionth.
  return -tens > maxTextLength * 2 ? 1n : divideUp(amount, 10n ** BigInt(-tens));
}

/** Divides and rounds away from zero, because a small request must not become zero. */
function divideUp(value: bigint, by: bigint): bigint {
  const floor = value / by;
  if (value % by === 0n) return floor;
  return value < 0n ? floor - 1n : floor + 1n;
}

/**
 * Formats a quantity in canonical form: without fraction, with the largest suffix that loses
 * nothing.
 */
export function formatQuantity(quantity: Quantity): string {
  const { nanos, format } = quantity;
  if (nanos === 0n) return '0';
  const size = nanos < 0n ? -nanos : nanos;
  // Small or fractional amounts with a binary suffix are formatted with a decimal one.
  const binary = format === 'BinarySI' && size >= 1024n * nano && size % nano === 0n;
  if (binary) return formatBinary(nanos / nano);
  return format === 'DecimalExponent' ? formatExponent(nanos) : formatDecimal(nanos);
}

function formatBinary(value: bigint): string {
  let text = `${value}`;
  for (const [suffix, exponent] of binarySuffixes) {
    const unit = 2n ** BigInt(exponent);
    if (value % unit === 0n) text = `${value / unit}${suffix}`;
  }
  return text;
}

function formatDecimal(nanos: bigint): string {
  let text = `${nanos}n`;
  for (const [suffix, unit] of decimalUnits) {
    if (nanos % unit !== 0n) break;
    text = `${nanos / unit}${suffix}`;
  }
  return text;
}

function formatExponent(nanos: bigint): string {
  let exponent = -9;
  let mantissa = nanos;
  while (mantissa % 1000n === 0n) {
    mantissa /= 1000n;
    exponent += 3;
  }
  return exponent === 0 ? `${mantissa}` : `${mantissa}e${exponent}`;
}

/** The quantity in whole units, rounded away from zero. */
export function quantityValue(quantity: Quantity): bigint {
  return divideUp(quantity.nanos, nano);
}

/** The quantity in thousandths (millicores for CPU), rounded away from zero. */
export function quantityMilliValue(quantity: Quantity): bigint {
  return divideUp(quantity.nanos, 1_000_000n);
}

export function quantityOf(value: bigint | number, format: QuantityFormat = 'DecimalSI'): Quantity {
  return { nanos: BigInt(value) * nano, format };
}

export function milliQuantity(value: bigint | number, format: QuantityFormat = 'DecimalSI'): Quantity {
  return { nanos: BigInt(value) * 1_000_000n, format };
}

/** Zero plus a quantity has the format of that quantity, because sums start at zero. */
export function addQuantities(a: Quantity, b: Quantity): Quantity {
  return { nanos: a.nanos + b.nanos, format: a.nanos === 0n ? b.format : a.format };
}

export function subtractQuantities(a: Quantity, b: Quantity): Quantity {
  return { nanos: a.nanos - b.nanos, format: a.nanos === 0n ? b.format : a.format };
}

/** Compares two quantities; negative when `a` is smaller. */
export function compareQuantities(a: Quantity, b: Quantity): -1 | 0 | 1 {
  if (a.nanos === b.nanos) return 0;
  return a.nanos < b.nanos ? -1 : 1;
}
