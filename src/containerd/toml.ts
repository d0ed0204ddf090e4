import { KubelingError } from '../lib/index.ts';

export type TomlScalar = string | number | boolean;
export type TomlValue = TomlScalar | readonly TomlScalar[] | TomlTable | readonly TomlTable[];
/** A TOML table; keys with an undefined value are omitted. */
export interface TomlTable {
  readonly [key: string]: TomlValue | undefined;
}

/**
 * Writes a table as a TOML 1.0 document: plain values first, then tables, each in the given order.
 */
export function toToml(table: TomlTable): string {
  const lines: string[] = [];
  writeTable(table, [], lines);
  return `${lines.join('\n')}\n`;
}

function writeTable(table: TomlTable, path: readonly string[], lines: string[]): void {
  const entries = Object.entries(table).filter(isPresent);
  for (const [key, value] of entries) {
    if (!isNested(value)) lines.push(`${tomlKey(key)} = ${inline(value, [...path, key])}`);
  }
  for (const [key, value] of entries) {
    if (isNested(value)) writeNested(value, [...path, key], lines);
  }
}

function writeNested(
  value: TomlTable | readonly TomlTable[],
  path: readonly string[],
  lines: string[],
): void {
  const header = path.map(tomlKey).join('.');
  const isList = Array.isArray(value);
  for (const table of isList ? (value as readonly TomlTable[]) : [value as TomlTable]) {
    if (isList) lines.push('', `[[${header}]]`);
    else if (needsHeader(table)) lines.push('', `[${header}]`);
    writeTable(table, path, lines);
  }
}

/**
 * Whether a table needs a header line. A table with only subtables needs none, because the headers
 * of the subtables define it.
 */
function needsHeader(table: TomlTable): boolean {
  const values = Object.entries(table).filter(isPresent);
  return values.length === 0 || values.some(([, value]) => !isNested(value));
}

function isPresent(entry: [string, TomlValue | undefined]): entry is [string, TomlValue] {
  return entry[1] !== undefined;
}

/** An empty list is written as a plain value, not as a list of tables. */
function isNested(value: TomlValue): value is TomlTable | readonly TomlTable[] {
  return Array.isArray(value) ? typeof value[0] === 'object' : typeof value === 'object';
}

function inline(value: TomlScalar | readonly TomlScalar[], path: readonly string[]): string {
  if (typeof value === 'object') return `[${value.map((item) => inline(item, path)).join(', ')}]`;
  if (typeof value === 'string') return tomlString(value);
  if (typeof value === 'number' && !Number.isSafeInteger(value)) {
    throw new KubelingError(
      'CONTAINERD_CONFIG',
      `Cannot write ${path.join('.')} as it must be a whole number: current value is ${value}`,
    );
  }
  return String(value);
}

function tomlKey(key: string): string {
  return /^[A-Za-z0-9_-]+$/.test(key) ? key : tomlString(key);
}

const shortEscapes: Readonly<Record<string, string>> = {
  '"': '\\"',
  '\\': '\\\\',
  '\b': '\\b',
  '\t': '\\t',
  '\n': '\\n',
  '\f': '\\f',
  '\r': '\\r',
};

/** Writes a basic TOML string: in double quotes with the required escapes. */
function tomlString(text: string): string {
  if (!text.isWellFormed()) {
    throw new KubelingError('CONTAINERD_CONFIG', 'Cannot write a string with half a surrogate pair as TOML');
  }
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters TOML wants escaped
  const escaped = text.replaceAll(/["\\\u0000-\u001f\u007f]/g, (char) => {
    return shortEscapes[char] ?? `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });
  return `"${escaped}"`;
}
