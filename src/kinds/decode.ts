import { didYouMean, type TextPosition, type YamlEntry, type YamlTree } from '../lib/index.ts';
import { FieldPath } from './field-path.ts';
import { readScalar, zeroOf } from './scalars.ts';
import { isScalarType, type KindField, type KindFields, type KindTable, type ScalarType } from './table.ts';

/**
 * A finding about an object. An error makes it unusable; a warning says that a part of it has no
 * effect.
 */
export interface KindFinding {
  readonly severity: 'error' | 'warning';
  readonly field: FieldPath;
  /** The position of the finding; undefined when the object was not read from text. */
  readonly at: TextPosition | undefined;
  readonly message: string;
  /**
   * The kind of mistake that strict validation rejects: an unknown field, a duplicate field, or a
   * value of the wrong type.
   */
  readonly problem: 'unknown' | 'twice' | 'value';
}

export interface DecodedKind<T> {
  /**
   * The object as far as it could be decoded. Required fields are present, empty if necessary; null
   * means absent.
   */
  readonly value: T;
  readonly findings: readonly KindFinding[];
}

/** Decodes a tree as an object of a kind. Never throws. `T` must be the type of that kind. */
export function decodeTree<T>(table: KindTable, kind: string, tree: YamlTree): DecodedKind<T> {
  const decoder = new Decoder(table);
  const value = decoder.object(kind, tree, FieldPath.root) as T;
  return { value, findings: decoder.findings };
}

/** Decodes a value of JSON.parse as an object of a kind; the findings have no position. */
export function decodeJson<T>(table: KindTable, kind: string, json: unknown): DecodedKind<T> {
  const { value, findings } = decodeTree<T>(table, kind, treeOfJson(json));
  return { value, findings: findings.map((finding) => ({ ...finding, at: undefined })) };
}

const nowhere: TextPosition = { line: 1, column: 1 };
/**
 * At most this many unknown fields get a suggestion, because computing one is slow, and an object
 * with more of them is no typing error.
 */
const maxSuggestions = 100;

function treeOfJson(json: unknown): YamlTree {
  if (Array.isArray(json)) return { kind: 'list', items: json.map(treeOfJson), at: nowhere };
  if (typeof json === 'object' && json !== null) {
    const entries = Object.entries(json).map(([key, value]) => ({
      key,
      at: nowhere,
      value: treeOfJson(value),
    }));
    return { kind: 'map', entries, at: nowhere };
  }
  const isScalar = ['string', 'number', 'bigint', 'boolean'].includes(typeof json);
  return { kind: 'scalar', value: isScalar ? (json as string) : null, at: nowhere };
}

type PlainObject = Readonly<Record<string, unknown>>;

class Decoder {
  readonly findings: KindFinding[] = [];
  readonly #table: KindTable;

  constructor(table: KindTable) {
    this.#table = table;
  }

  object(kind: string, tree: YamlTree, path: FieldPath): PlainObject {
    const fields = this.#table.fieldsOf(kind);
    const read = new Map<string, unknown>();
    for (const entry of this.#entries(tree, path, 'fields')) {
      const at = path.child(entry.key);
      const field = fields.get(entry.key);
      if (field === undefined) this.#unknown(entry, at, fields);
      else this.#keep(read, entry.key, this.#value(field, entry.value, at));
    }
    for (const field of fields.values())
      if (field.required && !read.has(field.name)) read.set(field.name, this.#empty(field));
    return Object.fromEntries(read);
  }

  #value(field: KindField, tree: YamlTree, path: FieldPath): unknown {
    if (isNull(tree)) return undefined;
    if (field.shape === 'list') return this.#list(field.type, tree, path);
    if (field.shape === 'map') return this.#map(field.type, tree, path);
    return this.#single(field.type, tree, path);
  }

  #single(type: string, tree: YamlTree, path: FieldPath): unknown {
    if (!isScalarType(type)) return this.object(type, tree, path);
    if (type === 'FieldsV1') return {};
    if (type === 'ExtraValue') return this.#list('string', tree, path);
    if (isNull(tree)) return zeroOf(type);
    const read =
      tree.kind === 'scalar' && tree.value !== null
        ? readScalar(type, tree.value)
        : { must: scalarNames[type] };
    if ('value' in read) return read.value;
    // The message does not quote the wrong value of a bytes field, which is usually a secret, nor
    // that of a string field, which may be a password that YAML reads as a number.
    const value = type === 'string' ? kindOf(tree) : show(tree);
    const current = type === 'bytes' ? '' : `: current value is ${value}`;
    this.#error(tree, path, `must be ${read.must}${current}`);
    return undefined;
  }

  #list(type: string, tree: YamlTree, path: FieldPath): unknown {
    if (tree.kind !== 'list') {
      this.#error(tree, path, `must be a list: current value is ${kindOf(tree)}`);
      return undefined;
    }
    const items = tree.items.map((item, index) => this.#single(type, item, path.index(index)));
    return items.filter((item) => item !== undefined);
  }

  #map(type: string, tree: YamlTree, path: FieldPath): unknown {
    const read = new Map<string, unknown>();
    for (const entry of this.#entries(tree, path, 'keys and values'))
      this.#keep(read, entry.key, this.#single(type, entry.value, path.key(entry.key)));
    return Object.fromEntries(read);
  }

  /** The last value of a duplicate key counts; the earlier ones are reported. */
  #entries(tree: YamlTree, path: FieldPath, of: string): readonly YamlEntry[] {
    if (isNull(tree)) return [];
    if (tree.kind !== 'map') {
      this.#error(tree, path, `must be a map of ${of}: current value is ${kindOf(tree)}`);
      return [];
    }
    const last = new Map(tree.entries.map((entry) => [entry.key, entry]));
    for (const entry of tree.entries)
      if (last.get(entry.key) !== entry)
        this.#warn(entry, path.child(entry.key), 'is written twice: the last one counts', 'twice');
    return last.size === tree.entries.length ? tree.entries : [...last.values()];
  }

  #keep(read: Map<string, unknown>, key: string, value: unknown): void {
    if (value !== undefined) read.set(key, value);
  }

  #empty({ shape, type }: KindField): unknown {
    if (shape === 'list') return [];
    if (shape === 'map') return {};
    return isScalarType(type) ? zeroOf(type) : this.object(type, emptyTree, FieldPath.root);
  }

  #unknown(entry: YamlEntry, path: FieldPath, fields: KindFields): void {
    const advice = this.findings.length < maxSuggestions ? didYouMean(entry.key, fields.keys()) : '';
    this.#warn(entry, path, `is not a known field and has no effect${advice}`, 'unknown');
  }

  #error(part: { readonly at: TextPosition }, field: FieldPath, message: string): void {
    this.findings.push({ severity: 'error', field, at: part.at, message, problem: 'value' });
  }

  #warn(
    part: { readonly at: TextPosition },
    field: FieldPath,
    message: string,
    problem: 'unknown' | 'twice',
  ): void {
    this.findings.push({ severity: 'warning', field, at: part.at, message, problem });
  }
}

const emptyTree: YamlTree = { kind: 'map', entries: [], at: nowhere };

const scalarNames = {
  string: 'a string',
  bool: 'true or false',
  int32: 'a whole number',
  int64: 'a whole number',
  Quantity: 'a quantity',
  IntOrString: 'a whole number or a string',
  Time: 'a time',
  MicroTime: 'a time',
  bytes: 'base64',
} as const satisfies Record<Exclude<ScalarType, 'FieldsV1' | 'ExtraValue'>, string>;

function isNull(tree: YamlTree): boolean {
  return tree.kind === 'scalar' && tree.value === null;
}

/**
 * A value may be a secret: these messages, which are written to logs and events, do not quote it.
 */
function kindOf(tree: YamlTree): string {
  if (tree.kind !== 'scalar') return `a ${tree.kind}`;
  if (typeof tree.value === 'string') return 'a string';
  return typeof tree.value === 'boolean' ? String(tree.value) : 'a number';
}

const maxShownLength = 80;

function show(tree: YamlTree): string {
  if (tree.kind !== 'scalar') return `a ${tree.kind}`;
  const text = typeof tree.value === 'string' ? JSON.stringify(tree.value) : String(tree.value);
  return text.length > maxShownLength ? `${text.slice(0, maxShownLength)}…` : text;
}
