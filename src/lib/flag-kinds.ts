import { KubelingError } from './errors.ts';
import { tryParseDurationMs } from './go-duration.ts';
import { didYouMean } from './nearest-name.ts';

/** How the text of a command line flag is converted to a value. */
export interface FlagKind<T> {
  /** The placeholder for the value in the help, such as `int` or `key=value,...`. */
  readonly label: string;
  /**
   * The value of a flag that is given without one; flags of a kind without `bare` require a value.
   */
  readonly bare?: string;
  /**
   * Converts the text; throws FLAG_INVALID. `previous` is the value of an earlier use of the same
   * flag, for flags that accumulate.
   */
  read(text: string, previous: T | undefined): T;
}

/** A FLAG_INVALID error with the message "must be X: current value is Y". */
export function flagError(must: string, text: string): KubelingError {
  return new KubelingError('FLAG_INVALID', `must be ${must}: current value is ${JSON.stringify(text)}`);
}

const boolWords: ReadonlyMap<string, boolean> = new Map([
  ...['1', 't', 'T', 'true', 'TRUE', 'True'].map((word) => [word, true] as const),
  ...['0', 'f', 'F', 'false', 'FALSE', 'False'].map((word) => [word, false] as const),
]);

/**
 * Converts a word that Kubernetes accepts as a boolean on a command line; undefined for any other
 * text.
 */
export function tryParseBool(text: string): boolean | undefined {
  return boolWords.get(text);
}

function readBool(text: string): boolean {
  const value = tryParseBool(text);
  if (value === undefined) throw flagError('true or false', text);
  return value;
}

export const boolFlag: FlagKind<boolean> = { label: 'bool', bare: 'true', read: readBool };

export const stringFlag: FlagKind<string> = { label: 'string', read: (text) => text };

export const durationFlag: FlagKind<number> = {
  label: 'duration',
  read(text) {
    const ms = tryParseDurationMs(text);
    if (ms === undefined) throw flagError('a duration such as 300ms, 10s or 1h30m', text);
    return ms;
  },
};

export function intFlag(min = Number.MIN_SAFE_INTEGER, max = Number.MAX_SAFE_INTEGER): FlagKind<number> {
  return {
    label: 'int',
    read(text) {
      const value = /^[-+]?(0[xX][\da-fA-F]+|0[oO]?[0-7]+|0[bB][01]+|\d+)$/.test(text)
        ? goInteger(text)
        : Number.NaN;
      if (!(value >= min && value <= max)) throw flagError(`a whole number from ${min} to ${max}`, text);
      return value;
    },
  };
}

/** Go reads a number with a leading zero as octal; JavaScript does not. */
function goInteger(text: string): number {
  const sign = text.startsWith('-') ? -1 : 1;
  const digits = text.replace(/^[-+]/, '').replace(/^0+(?=\d)/, '0o');
  return sign * Number(digits);
}

export function choiceFlag<const T extends string>(choices: readonly T[]): FlagKind<T> {
  const shown = choices.map((choice) => (choice === '' ? '""' : choice)).join(', ');
  return {
    label: choices.filter((choice) => choice !== '').join('|'),
    read(text) {
      const found = choices.find((choice) => choice === text);
      if (found === undefined) throw flagError(`one of ${shown}${didYouMean(text, choices)}`, text);
      return found;
    },
  };
}

/** The kind of lists such as `a,b,"c,d"`; a repeated flag adds to the list. */
export function listFlag<T>(item: FlagKind<T>): FlagKind<readonly T[]> {
  return {
    label: `${item.label},...`,
    read: (text, previous = []) => [
      ...previous,
      ...splitCommas(text).map((part) => item.read(part, undefined)),
    ],
  };
}

/**
 * Splits a list at its commas. Commas inside double quotes do not separate; a doubled quote inside
 * quotes is one quote.
 */
function splitCommas(text: string): string[] {
  if (text === '') return [];
  const parts: string[] = [];
  const cell = /(?:"((?:[^"]|"")*)"|([^,"]*))(,|$)/y;
  while (cell.lastIndex <= text.length) {
    const found = cell.exec(text);
    if (found === null) throw flagError('a comma-separated list with balanced quotes', text);
    parts.push(found[1] === undefined ? (found[2] ?? '') : found[1].replaceAll('""', '"'));
    if (found[3] === '') break;
  }
  return parts;
}

export interface MapFlagOptions {
  /** The text between key and value; `=` by default. */
  readonly between?: string;
  /**
   * Whether one use of the flag has many pairs, separated by commas, or one pair, whose value may
   * then contain commas.
   */
  readonly pairs?: 'many' | 'one';
  /** Whether each key needs a value; an omitted optional value is empty. */
  readonly value?: 'needed' | 'optional';
}

/** The kind of maps such as `a=1,b=2`; a repeated flag adds to the map. */
export function mapFlag<T>(
  item: FlagKind<T>,
  options: MapFlagOptions = {},
): FlagKind<Readonly<Record<string, T>>> {
  return {
    label: `key${options.between ?? '='}${item.label}${options.pairs === 'one' ? '' : ',...'}`,
    read(text, previous = {}) {
      const added = readPairs(text, options).map(
        ([key, value]) => [key, item.read(value, undefined)] as const,
      );
      return Object.fromEntries([...Object.entries(previous), ...added]);
    },
  };
}

/**
 * The kind of maps such as `a:1,a:2,b:3`, in which a key may have several values; their order is
 * kept.
 */
export function multimapFlag(options: MapFlagOptions): FlagKind<Readonly<Record<string, readonly string[]>>> {
  return {
    label: `key${options.between ?? '='}value,...`,
    read(text, previous = {}) {
      const lists = new Map(Object.entries(previous));
      for (const [key, value] of readPairs(text, options)) lists.set(key, [...(lists.get(key) ?? []), value]);
      return Object.fromEntries(lists);
    },
  };
}

function readPairs(text: string, options: MapFlagOptions): [string, string][] {
  const between = options.between ?? '=';
  const pairs = options.pairs === 'one' ? [text] : text.split(',').filter((pair) => pair !== '');
  return pairs.map((pair) => {
    const at = pair.indexOf(between);
    if (at < 0 && options.value !== 'optional') throw flagError(`pairs of key${between}value`, pair);
    return at < 0 ? [pair.trim(), ''] : [pair.slice(0, at).trim(), pair.slice(at + between.length).trim()];
  });
}
