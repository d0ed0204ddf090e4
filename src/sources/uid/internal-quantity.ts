import type { YamlTree } from '../../lib/index.ts';

/**
 * A quantity in the representation of the Go kubelet: `1000m` and `1` are the same amount but hash
 * differently. Small quantities are a 64-bit integer with a power of ten, others an
 * arbitrary-precision decimal; some cache their spelling.
 */
export interface HeldQuantity {
  readonly value: bigint;
  /** Exponent of ten by which the value is multiplied. */
  readonly scale: number;
  /**
   * Arbitrary-precision number that replaces the value, which is then zero; its scale is the number
   * of decimal places.
   */
  readonly decimal?: HeldDecimal;
  readonly spelling: string;
  readonly format: string;
}

interface HeldDecimal {
  readonly unscaled: bigint;
  readonly scale: number;
}

/** The zero quantity that an unset field has. */
export const noQuantity: HeldQuantity = { value: 0n, scale: 0, spelling: '', format: '' };

interface Written {
  readonly text: string;
  readonly negative: boolean;
  readonly integer: string;
  readonly fraction: string;
  readonly base: 2 | 10;
  readonly exponent: number;
  readonly format: 'DecimalSI' | 'BinarySI' | 'DecimalExponent';
}

const decimals = ['n', 'u', 'm', '', 'k', 'M', 'G', 'T', 'P', 'E'];
const binaries = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei'];
const nano = 9;
/** Numbers with at most this many decimal digits always fit in 64 bits. */
const safeDigits = 18;
const largest = 2n ** 63n - 1n;

export function holdWritten(tree: YamlTree | undefined): HeldQuantity {
  const text = textOf(tree);
  return text === undefined ? noQuantity : holdQuantity(text);
}

/** Parses a quantity; the text must be valid apart from surrounding spaces. */
export function holdQuantity(untrimmed: string): HeldQuantity {
  const text = untrimmed.trim();
  if (text === '0') return { value: 0n, scale: 0, spelling: text, format: 'DecimalSI' };
  const written = parse(text);
  return small(written) ?? large(written);
}

function parse(text: string): Written {
  const [, sign, digits = '', fraction = '', suffix = ''] = /^([-+]?)0*(\d*)\.?(\d*)(.*)/s.exec(text) ?? [];
  const number = { text, negative: sign === '-', integer: digits || '0', fraction };
  const decimal = decimals.indexOf(suffix);
  if (decimal >= 0) return { ...number, base: 10, exponent: 3 * decimal - nano, format: 'DecimalSI' };
  const binary = binaries.indexOf(suffix);
  if (binary >= 0) return { ...number, base: 2, exponent: 10 * binary, format: 'BinarySI' };
  return { ...number, base: 10, exponent: Number(suffix.slice(1)), format: 'DecimalExponent' };
}

/**
 * Converts to a 64-bit integer with a power of ten; undefined when there are too many digits or
 * decimal places.
 */
function small(written: Written): HeldQuantity | undefined {
  const { text, negative, integer, fraction, base, exponent, format } = written;
  const digits = integer + fraction;
  const scale = (base === 10 ? exponent : 0) - fraction.length;
  if (digitsToSpare(written) < 0 || scale < -nano) return undefined;
  const number = BigInt(digits);
  const size = base === 2 ? number << BigInt(exponent) : number;
  if (size > largest) return undefined;
  const canonical =
    base === 2
      ? exponent % 10 === 0 && (number & 7n) !== 0n
      : scale % 3 === 0 && !digits.endsWith('000') && !digits.startsWith('0');
  return { value: negative ? -size : size, scale, spelling: canonical ? text : '', format };
}

function digitsToSpare({ integer, fraction, base, exponent }: Written): number {
  if (base === 10) return safeDigits - integer.length - fraction.length;
  // A binary suffix adds about three decimal digits for each factor of 2^10.
  return fraction === '' ? 14 - integer.length - Math.trunc((exponent * 3) / 10) : -1;
}

function large({ negative, integer, fraction, base, exponent, format }: Written): HeldQuantity {
  const digits = BigInt(integer + fraction);
  const exact =
    base === 2
      ? { unscaled: digits << BigInt(exponent), scale: fraction.length }
      : { unscaled: digits, scale: fraction.length - exponent };
  const size = exact.unscaled === 0n ? exact : rounded(exact, nano);
  const isCapped = base === 2 && size.unscaled > largest * 10n ** BigInt(nano);
  const amount = isCapped ? { unscaled: largest, scale: 0 } : size;
  const isFraction = base === 2 && size.unscaled > 0n && size.unscaled < 10n ** BigInt(nano);
  const decimal = negative ? { ...amount, unscaled: -amount.unscaled } : amount;
  return { ...noQuantity, decimal, format: isFraction ? 'DecimalSI' : format };
}

/** Rounds to the given number of decimal places, away from zero. */
function rounded({ unscaled, scale }: HeldDecimal, to: number): HeldDecimal {
  if (to >= scale) return { unscaled: unscaled * 10n ** BigInt(to - scale), scale: to };
  return { unscaled: dividedUp(unscaled, scale - to), scale: to };
}

function dividedUp(value: bigint, tens: number): bigint {
  const by = 10n ** BigInt(tens);
  const away = value % by === 0n ? 0n : value < 0n ? -1n : 1n;
  return value / by + away;
}

const milli = 3;

/** Rounds up to thousandths, as the Go kubelet does in all resource lists. */
export function heldToMilli(quantity: HeldQuantity): HeldQuantity {
  const { value, scale, decimal } = quantity;
  if (decimal !== undefined) return { ...quantity, decimal: rounded(decimal, milli), spelling: '' };
  if (scale >= -milli) return quantity;
  return { ...quantity, value: dividedUp(value, -milli - scale), scale: -milli, spelling: '' };
}

export function addHeld(a: HeldQuantity, b: HeldQuantity): HeldQuantity {
  const format = isZero(a) ? b.format : a.format;
  const sum = a.decimal === undefined && b.decimal === undefined ? addSmall(a, b) : undefined;
  if (sum !== undefined) return { ...sum, spelling: '', format };
  const [one, other] = [decimalOf(a), decimalOf(b)];
  const scale = Math.max(one.scale, other.scale);
  const unscaled = rounded(one, scale).unscaled + rounded(other, scale).unscaled;
  return { ...noQuantity, decimal: { unscaled, scale }, format };
}

/** Adds two quantities at the finer of their scales; undefined when the sum exceeds 64 bits. */
function addSmall(a: HeldQuantity, b: HeldQuantity): Pick<HeldQuantity, 'value' | 'scale'> | undefined {
  if (b.value === 0n) return { value: a.value, scale: a.scale };
  if (a.value === 0n) return { value: b.value, scale: b.scale };
  const scale = Math.min(a.scale, b.scale);
  const one = a.value * 10n ** BigInt(a.scale - scale);
  const other = b.value * 10n ** BigInt(b.scale - scale);
  const value = one + other;
  return [one, other, value].every((part) => part <= largest && part >= -largest)
    ? { value, scale }
    : undefined;
}

/**
 * Returns the greater of two quantities, the first one when they are equal. Comparing a small with
 * a large quantity converts the small one.
 */
export function maxHeld(a: HeldQuantity, b: HeldQuantity): HeldQuantity {
  const [one, other] = [decimalOf(a), decimalOf(b)];
  const scale = Math.max(one.scale, other.scale);
  if (rounded(other, scale).unscaled <= rounded(one, scale).unscaled) return a;
  return a.decimal === undefined ? b : { ...b, value: 0n, scale: 0, decimal: other };
}

function isZero({ value, decimal }: HeldQuantity): boolean {
  return decimal === undefined ? value === 0n : decimal.unscaled === 0n;
}

function decimalOf({ value, scale, decimal }: HeldQuantity): HeldDecimal {
  return decimal ?? { unscaled: value, scale: 0 - scale };
}

const wordBits = 64;

/** Dumps the quantity with all its fields. */
export function dumpQuantity({ value, scale, decimal, spelling, format }: HeldQuantity): string {
  const held = decimal === undefined ? '<nil>' : dumpDecimal(decimal);
  return (
    `{i:(resource.int64Amount){value:(int64)${value} scale:(resource.Scale)${scale}} ` +
    `d:(resource.infDecAmount){Dec:(*inf.Dec)${held}} s:(string)${spelling} Format:(resource.Format)${format}}`
  );
}

function dumpDecimal({ unscaled, scale }: HeldDecimal): string {
  const words: bigint[] = [];
  for (let rest = unscaled < 0n ? -unscaled : unscaled; rest > 0n; rest >>= BigInt(wordBits))
    words.push(BigInt.asUintN(wordBits, rest));
  const abs = words.length === 0 ? '<nil>' : `[${words.join(' ')}]`;
  return `{unscaled:(big.Int){neg:(bool)${unscaled < 0n} abs:(big.nat)${abs}} scale:(inf.Scale)${scale}}`;
}

/**
 * Returns the value of a key in the manifest as written, before decoding. The last of duplicate
 * keys counts.
 */
export function entryOf(tree: YamlTree | undefined, key: string): YamlTree | undefined {
  return tree?.kind === 'map' ? tree.entries.findLast((entry) => entry.key === key)?.value : undefined;
}

/** Whether the manifest contains the value; null counts as missing. */
export function isWritten(tree: YamlTree | undefined): tree is YamlTree {
  return tree !== undefined && !(tree.kind === 'scalar' && tree.value === null);
}

export function textOf(tree: YamlTree | undefined): string | undefined {
  return tree?.kind === 'scalar' && tree.value !== null ? String(tree.value) : undefined;
}
