import {
  boolFlag,
  type FlagKind,
  flagError,
  mapFlag,
  multimapFlag,
  stringFlag,
  tryParseQuantity,
} from '../lib/index.ts';

/** Flags with a special syntax. Their values have the type of the field that they set. */

/** Syntax: `memory.available<100Mi,nodefs.available<10%`. */
export const thresholds = mapFlag(stringFlag, { between: '<' });

/** Syntax: `name:value,name:value`. */
export const headers = multimapFlag({ between: ':' });

export const gates = mapFlag(boolFlag);

/** Syntax: one `name=value` per flag, because a value may contain a comma. */
export const singlePair = mapFlag(stringFlag, { pairs: 'one' });

interface WrittenTaint {
  readonly key: string;
  readonly value: string;
  readonly effect: string;
}

/**
 * Syntax: `key=value:effect` or `key:effect`, separated by commas; a repeated flag replaces earlier
 * ones.
 */
export const taints: FlagKind<readonly WrittenTaint[]> = {
  label: 'key=value:effect,...',
  read: (text) => (text === '' ? [] : text.split(',').map(readTaint)),
};

function readTaint(text: string): WrittenTaint {
  const parts = /^([^=:]*)(?:=([^=:]*))?:([^:]*)$/.exec(text);
  if (parts === null) throw flagError('taints such as key=value:NoSchedule', text);
  return { key: parts[1] ?? '', value: parts[2] ?? '', effect: parts[3] ?? '' };
}

interface WrittenReservation {
  readonly numaNode: number;
  readonly limits: Readonly<Record<string, unknown>>;
}

/** Syntax: `0:memory=1Gi,hugepages-1Gi=2Gi;1:memory=2Gi`; a repeated flag adds NUMA nodes. */
export const reservedMemory: FlagKind<readonly WrittenReservation[]> = {
  label: 'node:type=quantity,...;...',
  read: (text, previous = []) => (text === '' ? [] : [...previous, ...text.split(';').map(readReservation)]),
};

function readReservation(text: string): WrittenReservation {
  const parts = /^(\d{1,9}):([^:]+)$/.exec(text);
  if (parts === null) throw flagError('reservations such as 0:memory=1Gi,hugepages-1Gi=2Gi', text);
  const limits = (parts[2] ?? '').split(',').map(readLimit);
  return { numaNode: Number(parts[1]), limits: Object.fromEntries(limits) };
}

function readLimit(text: string): readonly [string, unknown] {
  const [name = '', amount = '', ...rest] = text.split('=');
  const quantity = tryParseQuantity(amount);
  if (quantity === undefined || rest.length > 0)
    throw flagError('a type with a quantity such as memory=1Gi', text);
  return [name, quantity];
}

interface WrittenVerbosity {
  readonly filePattern: string;
  readonly verbosity: number;
}

/** Syntax: `pattern=2,other*=4`; a repeated flag adds patterns. */
export const verbosities: FlagKind<readonly WrittenVerbosity[]> = {
  label: 'pattern=N,...',
  read: (text, previous = []) => [...previous, ...text.split(',').filter(Boolean).map(readVerbosity)],
};

function readVerbosity(text: string): WrittenVerbosity {
  const parts = /^([^=]+)=(\d{1,9})$/.exec(text);
  if (parts === null) throw flagError('patterns with a level such as pleg*=4', text);
  return { filePattern: parts[1] ?? '', verbosity: Number(parts[2]) };
}
