import { posix } from 'node:path';
import {
  didYouMean,
  durationMs,
  formatDurationMs,
  tryParseDurationMs,
  tryParseQuantity,
  type YamlEntry,
  type YamlTree,
} from '../lib/index.ts';
import { type Fields, hasSecrets, type TextType, type ValueType } from './fields.ts';
import { type Finding, fieldPath, findingAt, keyPath, type Origin } from './findings.ts';
import type { RawMap, RawValue } from './raw-values.ts';

export interface SourceFile {
  readonly kind: 'file' | 'drop-in';
  /** The absolute path of the file. */
  readonly path: string;
}

export interface DecodedDocument {
  readonly written: RawMap;
  readonly problems: readonly Finding[];
}

/**
 * Decodes a document with the configuration table. Invalid parts are reported and omitted; all
 * others are returned.
 */
export function decodeDocument(fields: Fields, tree: YamlTree, file: SourceFile): DecodedDocument {
  const decoder = new Decoder(file, fields);
  return { written: decoder.object(fields, tree, ''), problems: decoder.problems };
}

class Decoder {
  readonly problems: Finding[] = [];
  readonly #file: SourceFile;
  readonly #root: Fields;

  constructor(file: SourceFile, root: Fields) {
    this.#file = file;
    this.#root = root;
  }

  object(fields: Fields, tree: YamlTree, path: string): RawMap {
    const entries = new Map<string, RawValue>();
    for (const entry of this.#entriesOf(tree, path, 'fields')) {
      const at = fieldPath(path, entry.key);
      const field = Object.hasOwn(fields, entry.key) ? fields[entry.key] : undefined;
      if (field === undefined)
        this.#report(entry, at, `is not a known field${suggestField(entry.key, fields, this.#root)}`);
      else if (this.#isNew(entries, entry, at)) {
        const zero = field.zero === 'default' && isZero(field.type, entry.value);
        this.#keep(entries, entry, zero ? this.#zero(field.type, entry) : this.#value(field.type, entry, at));
      }
    }
    return { kind: 'map', entries, origin: this.#origin(tree) };
  }

  #value(type: ValueType, entry: Pick<YamlEntry, 'value' | 'at'>, path: string): RawValue | undefined {
    const { value: tree } = entry;
    if (tree.kind === 'scalar' && tree.value === null)
      return { kind: 'nothing', origin: this.#origin(entry) };
    if (type.kind === 'object')
      return { ...this.object(type.fields, tree, path), origin: this.#origin(entry) };
    if (type.kind === 'map') return this.#map(type.item, tree, path, entry);
    if (type.kind === 'list') return this.#list(type.item, tree, path, entry);
    return this.#scalar(type, tree, path, entry);
  }

  #map(item: ValueType, tree: YamlTree, path: string, entry: Pick<YamlEntry, 'at'>): RawValue {
    const entries = new Map<string, RawValue>();
    for (const inner of this.#entriesOf(tree, path, 'keys and values')) {
      const at = keyPath(path, inner.key);
      if (this.#isNew(entries, inner, at)) this.#keep(entries, inner, this.#value(item, inner, at));
    }
    return { kind: 'map', entries, origin: this.#origin(entry) };
  }

  #list(item: ValueType, tree: YamlTree, path: string, entry: Pick<YamlEntry, 'at'>): RawValue | undefined {
    if (tree.kind !== 'list') {
      this.#report(tree, path, `must be a list: current value is ${show(item, tree)}`);
      return undefined;
    }
    const items = tree.items.map((value, index) => this.#item(item, value, keyPath(path, index)));
    return { kind: 'list', items: items.filter((node) => node !== undefined), origin: this.#origin(entry) };
  }

  #item(type: ValueType, value: YamlTree, path: string): RawValue | undefined {
    const node = this.#value(type, { value, at: value.at }, path);
    if (node?.kind !== 'nothing') return node;
    this.#report(value, path, 'must not be null');
    return undefined;
  }

  #scalar(type: ValueType, tree: YamlTree, path: string, entry: Pick<YamlEntry, 'at'>): RawValue | undefined {
    const read = readScalar(type, tree);
    if ('must' in read) {
      this.#report(tree, path, `must be ${read.must}: current value is ${show(type, tree)}`);
      return undefined;
    }
    const value = this.#resolved(type, read.value);
    const message = checkScalar(type, value);
    if (message === undefined) return { kind: 'value', value, origin: this.#origin(entry) };
    this.#report(tree, path, message);
    return undefined;
  }

  /**
   * Records that an explicit zero means the default, with its position, because it may reset the
   * value of an earlier file.
   */
  #zero(type: ValueType, entry: YamlEntry): RawValue {
    const values: Partial<Record<ValueType['kind'], unknown>> = { bool: false, text: '' };
    return { kind: 'value', value: values[type.kind] ?? 0, origin: this.#origin(entry) };
  }

  /** Resolves a relative path against the directory of its file; an empty path stays empty. */
  #resolved(type: ValueType, value: unknown): unknown {
    if (type.kind !== 'text' || type.path === undefined || value === '') return value;
    const text = String(value);
    return posix.isAbsolute(text) ? text : posix.join(posix.dirname(this.#file.path), text);
  }

  #entriesOf(tree: YamlTree, path: string, of: string): readonly YamlEntry[] {
    if (tree.kind === 'map') return tree.entries;
    // An empty document or object is valid; anything else that is not a map is reported.
    if (!(tree.kind === 'scalar' && tree.value === null)) this.#report(tree, path, `must be a map of ${of}`);
    return [];
  }

  #isNew(entries: ReadonlyMap<string, RawValue>, entry: YamlEntry, path: string): boolean {
    const first = entries.get(entry.key)?.origin;
    if (first === undefined) return true;
    const where = first.kind === 'file' || first.kind === 'drop-in' ? ` (first on line ${first.line})` : '';
    this.#report(entry, path, `is written twice${where}`);
    return false;
  }

  /**
   * Adds an entry. An unreadable value is recorded too, so that a second entry with its name is
   * reported as a duplicate.
   */
  #keep(entries: Map<string, RawValue>, entry: YamlEntry, node: RawValue | undefined): void {
    entries.set(entry.key, node ?? { kind: 'nothing', origin: this.#origin(entry) });
  }

  #report(at: Pick<YamlEntry, 'at'>, path: string, message: string): void {
    this.problems.push(findingAt(this.#origin(at), path, message));
  }

  #origin(part: Pick<YamlEntry, 'at'>): Origin {
    return { kind: this.#file.kind, file: this.#file.path, ...part.at };
  }
}

type Read = { readonly value: unknown } | { readonly must: string };

/** Checks the YAML type of a scalar; its range is checked later. */
function readScalar(type: ValueType, tree: YamlTree): Read {
  const value = tree.kind === 'scalar' ? tree.value : undefined;
  switch (type.kind) {
    case 'bool':
      return typeof value === 'boolean' ? { value } : { must: 'true or false' };
    case 'int':
      return Number.isSafeInteger(value) ? { value } : { must: describeRange(type.min, type.max) };
    case 'float':
      return typeof value === 'number' && Number.isFinite(value) ? { value } : { must: 'a number' };
    case 'text':
      return typeof value === 'string'
        ? { value }
        : { must: isBare(value) ? 'a string, in quotes' : 'a string' };
    case 'quantity':
      return readQuantity(value);
    default:
      return readDuration(
        value,
        type.kind === 'duration' && type.numbers === 'nanoseconds' ? 'taken' : 'refused',
      );
  }
}

function isBare(value: unknown): boolean {
  return typeof value === 'number' || typeof value === 'bigint' || typeof value === 'boolean';
}

function readQuantity(value: unknown): Read {
  const parsed =
    isBare(value) || typeof value === 'string' ? tryParseQuantity(String(value).trim()) : undefined;
  return parsed === undefined ? { must: 'a quantity such as 500m, 64Mi or 2G' } : { value: parsed };
}

function readDuration(value: unknown, numbers: 'taken' | 'refused'): Read {
  if (numbers === 'taken' && Number.isSafeInteger(value))
    return { value: durationMs(BigInt(value as number)) };
  const parsed = typeof value === 'string' ? tryParseDurationMs(value) : undefined;
  return parsed === undefined ? { must: 'a duration such as 300ms, 10s or 1h30m' } : { value: parsed };
}

/** Whether a YAML node is the zero value of its type. */
function isZero(type: ValueType, tree: YamlTree): boolean {
  if (tree.kind !== 'scalar') return false;
  if (type.kind === 'duration') {
    const read = readScalar(type, tree);
    return 'value' in read && read.value === 0;
  }
  const zeros: Partial<Record<ValueType['kind'], unknown>> = { bool: false, int: 0, float: 0, text: '' };
  return Object.hasOwn(zeros, type.kind) && tree.value === zeros[type.kind];
}

function show(type: ValueType, tree: YamlTree): string {
  if (hasSecrets(type)) return 'hidden';
  if (tree.kind !== 'scalar') return tree.kind === 'map' ? 'a map' : 'a list';
  return typeof tree.value === 'string' ? JSON.stringify(tree.value) : String(tree.value);
}

/**
 * Suggests a field for an unknown name: a similar name at the same path, or the same name at
 * another path.
 */
function suggestField(written: string, fields: Fields, root: Fields): string {
  const near = didYouMean(written, Object.keys(fields));
  if (near !== '') return near;
  const elsewhere = findPaths(root, '').find((path) => path.endsWith(`.${written}`));
  return elsewhere === undefined ? '' : ` (did you mean ${elsewhere}?)`;
}

function findPaths(fields: Fields, parent: string): string[] {
  return Object.entries(fields).flatMap(([name, field]) => {
    const path = fieldPath(parent, name);
    return field.type.kind === 'object' ? [path, ...findPaths(field.type.fields, path)] : [path];
  });
}

/**
 * Returns why a value of the right YAML type is invalid, as "must be X: current value is Y";
 * undefined if it is valid.
 */
function checkScalar(type: ValueType, value: unknown): string | undefined {
  const must = whatItMustBe(type, value);
  return must === undefined ? undefined : `must be ${must}: current value is ${showValue(type, value)}`;
}

function whatItMustBe(type: ValueType, value: unknown): string | undefined {
  if (type.kind === 'int') {
    return (value as number) >= type.min && (value as number) <= type.max
      ? undefined
      : describeRange(type.min, type.max);
  }
  if (type.kind === 'float') {
    const inside = (value as number) > type.above && (value as number) <= type.max;
    return inside ? undefined : `a number above ${type.above} and up to ${type.max}`;
  }
  if (type.kind === 'duration') return durationMust(value as number, type.min, type.max);
  return type.kind === 'text' ? textMust(type, value as string) : undefined;
}

function describeRange(min: number, max: number): string {
  return `a whole number from ${min} to ${max}`;
}

function durationMust(ms: number, min: number | undefined, max: number | undefined): string | undefined {
  const low = min !== undefined && ms < min;
  const high = max !== undefined && ms > max;
  if (!low && !high) return undefined;
  if (min !== undefined && max !== undefined)
    return `from ${formatDurationMs(min)} to ${formatDurationMs(max)}`;
  return low ? `${formatDurationMs(min)} or longer` : `${formatDurationMs(max ?? 0)} or shorter`;
}

function textMust(type: TextType, value: string): string | undefined {
  if (type.choices !== undefined && !type.choices.includes(value)) {
    const choices = type.choices.map((choice) => (choice === '' ? '""' : choice));
    return `one of ${choices.join(', ')}${didYouMean(value, type.choices)}`;
  }
  return type.check?.(value);
}

/** Shows a value in an error message; secrets are hidden. */
function showValue(type: ValueType, value: unknown): string {
  if (hasSecrets(type)) return 'hidden';
  return type.kind === 'duration' ? formatDurationMs(value as number) : JSON.stringify(value);
}

/** Checks a value and all nested values; reports each problem with its path. */
export function checkDeeply(
  type: ValueType,
  value: unknown,
  path: string,
): { path: string; message: string }[] {
  if (type.kind === 'list') {
    return (value as readonly unknown[]).flatMap((item, index) =>
      checkDeeply(type.item, item, keyPath(path, index)),
    );
  }
  if (type.kind === 'map') {
    const entries = Object.entries(value as Readonly<Record<string, unknown>>);
    return entries.flatMap(([key, item]) => checkDeeply(type.item, item, keyPath(path, key)));
  }
  if (type.kind === 'object') {
    const object = value as Readonly<Record<string, unknown>>;
    const fields = Object.entries(type.fields).filter(([name]) => object[name] !== undefined);
    return fields.flatMap(([name, field]) => checkDeeply(field.type, object[name], fieldPath(path, name)));
  }
  const message = checkScalar(type, value);
  return message === undefined ? [] : [{ path, message }];
}
