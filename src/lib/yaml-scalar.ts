/**
 * What an unquoted word of YAML means to Kubernetes programs, which read YAML 1.1 with a few habits of
 * their own: `yes` and `on` are booleans, `0644` is octal, and dates and times of day stay text.
 */
export type YamlScalar = string | number | bigint | boolean | null;

const words: ReadonlyMap<string, boolean | null> = new Map<string, boolean | null>([
  ...['y', 'Y', 'yes', 'Yes', 'YES', 'true', 'True', 'TRUE', 'on', 'On', 'ON'].map((w) => [w, true] as const),
  ...['n', 'N', 'no', 'No', 'NO', 'false', 'False', 'FALSE', 'off', 'Off', 'OFF'].map(
    (w) => [w, false] as const,
  ),
  ...['', '~', 'null', 'Null', 'NULL'].map((w) => [w, null] as const),
]);
const infinities: ReadonlyMap<string, number> = new Map([
  ...['.inf', '.Inf', '.INF', '+.inf', '+.Inf', '+.INF'].map((w) => [w, Number.POSITIVE_INFINITY] as const),
  ...['-.inf', '-.Inf', '-.INF'].map((w) => [w, Number.NEGATIVE_INFINITY] as const),
  ...['.nan', '.NaN', '.NAN'].map((w) => [w, Number.NaN] as const),
]);
const integer = /^([-+]?)(0[xX][\da-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9]\d*)$/;
const float = /^[-+]?(?:\.\d+|\d+(?:\.\d*)?)(?:[eE][-+]?\d+)?$/;

export function resolveYamlWord(text: string): YamlScalar {
  const word = words.get(text);
  if (word !== undefined) return word;
  const infinity = infinities.get(text);
  if (infinity !== undefined) return infinity;
  if (!/^[-+.\d]/.test(text)) return text;
  const plain = text.replaceAll('_', '');
  const whole = integer.exec(plain);
  if (whole !== null) return readInteger(whole[1] ?? '', whole[2] ?? '0') ?? Number(plain);
  return float.test(plain) ? Number(plain) : text;
}

/** Whether an unquoted word would be read as anything but itself. */
export function isPlainYamlText(text: string): boolean {
  return resolveYamlWord(text) === text;
}

/** Undefined beyond 64 bits, where the number is no longer an integer to its readers. */
function readInteger(sign: string, digits: string): number | bigint | undefined {
  const size = BigInt(/^0\d/.test(digits) ? `0o${digits.slice(1)}` : digits);
  const value = sign === '-' ? -size : size;
  if (value >= 2n ** 64n || value < -(2n ** 63n)) return undefined;
  return Number.isSafeInteger(Number(value)) ? Number(value) : value;
}
