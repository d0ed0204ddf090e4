import { KubelingError } from '../lib/index.ts';
import { kindTable } from './gen/kinds.ts';

/** The types that are a single value in YAML and JSON, whatever their wire format. */
export const scalarTypes = [
  'string',
  'bool',
  'int32',
  'int64',
  'Quantity',
  'IntOrString',
  'Time',
  'MicroTime',
  'bytes',
  'FieldsV1',
  /**
   * A list of strings that is a separate message in the wire format: `repeated string items = 1`.
   */
  'ExtraValue',
] as const;

export type ScalarType = (typeof scalarTypes)[number];

export interface KindField {
  /** The field number in protobuf; 0 for apiVersion and kind, which are outside of the message. */
  readonly number: number;
  readonly name: string;
  readonly shape: 'single' | 'list' | 'map';
  /** The scalar type of the field, or the name of another kind. */
  readonly type: string;
  /** Whether the field is written even when it is empty. */
  readonly required: boolean;
  readonly merge: ListMerge;
}

/** How a strategic merge patch changes a list; a field that is not a list has `whole`. */
export type ListMerge =
  /** The list of the patch replaces the old one. */
  | { readonly by: 'whole' }
  /** A set of scalars: the values of the patch are added. */
  | { readonly by: 'value' }
  /**
   * Items with the same value in the field `key` are merged; `keeps` says whether a merged item
   * keeps all its fields or only those that the patch names.
   */
  | { readonly by: 'key'; readonly key: string; readonly keeps: 'all-fields' | 'named-fields' };

/**
 * A field of a protobuf message. In protobuf, unlike in JSON, an inlined kind is a separate
 * message.
 */
export interface WireField extends Pick<KindField, 'name' | 'shape' | 'type'> {
  /** Whether the fields of the inlined message belong to the enclosing kind. */
  readonly place: 'own' | 'inlined';
}

/** The fields of one kind by name, including those of inlined kinds. */
export type KindFields = ReadonlyMap<string, KindField>;

export function isScalarType(type: string): type is ScalarType {
  return (scalarTypes as readonly string[]).includes(type);
}

/**
 * The fields of all kinds. A kind is parsed from the generated table when it is first needed,
 * because most never are.
 */
export class KindTable {
  readonly #lines: ReadonlyMap<string, string>;
  readonly #known = new Map<string, KindFields>();
  readonly #wires = new Map<string, ReadonlyMap<number, WireField>>();

  constructor(text: string = kindTable) {
    const lines = text.trim().split('\n');
    this.#lines = new Map(lines.map((line) => [line.slice(0, line.indexOf('|')), line]));
  }

  has(kind: string): boolean {
    return this.#lines.has(kind);
  }

  /** Returns the fields of a kind by name. An unknown kind is a bug. */
  fieldsOf(kind: string): KindFields {
    const known = this.#known.get(kind);
    if (known !== undefined) return known;
    const line = this.#lines.get(kind);
    if (line === undefined) throw new KubelingError('BUG', `The kind ${kind} is not in the table of kinds`);
    const fields = new Map(this.#read(line).map((field) => [field.name, field]));
    this.#known.set(kind, fields);
    return fields;
  }

  /** Returns the fields of a kind by protobuf number. An unknown kind is a bug. */
  wireOf(kind: string): ReadonlyMap<number, WireField> {
    const known = this.#wires.get(kind);
    if (known !== undefined) return known;
    const line = this.#lines.get(kind);
    if (line === undefined) throw new KubelingError('BUG', `The kind ${kind} is not in the table of kinds`);
    const wire = new Map(line.split('|').slice(1).map(wireField));
    this.#wires.set(kind, wire);
    return wire;
  }

  #read(line: string): KindField[] {
    const fields = line
      .split('|')
      .slice(1)
      .flatMap((text) => this.#field(text));
    const isTopLevel =
      line.startsWith('DeleteOptions|') ||
      fields.some(({ name, type }) => name === 'metadata' && type.endsWith('Meta'));
    return isTopLevel ? [...headers, ...fields] : fields;
  }

  #field(text: string): readonly KindField[] {
    const [number, name = '', ...words] = text.split(' ');
    const [first = '', second = ''] = words;
    if (first === 'inline') return [...this.fieldsOf(second).values()];
    const shape = first === 'list' || first === 'map' ? first : 'single';
    const type = shape === 'single' ? first : second;
    const required = words.includes('+required');
    return [{ number: Number(number), name, shape, type, required, merge: mergeOf(words) }];
  }
}

function wireField(text: string): readonly [number, WireField] {
  const [number, name = '', first = '', second = ''] = text.split(' ');
  if (first === 'inline') return [Number(number), { name, shape: 'single', type: second, place: 'inlined' }];
  const shape = first === 'list' || first === 'map' ? first : 'single';
  return [Number(number), { name, shape, type: shape === 'single' ? first : second, place: 'own' }];
}

/** The name of a kind in the table: the kind itself, unless two groups have a kind of that name. */
export function tableNameOf(group: string, kind: string): string {
  return group === 'events.k8s.io' && /^Event(List)?$/.test(kind) ? `Events${kind}` : kind;
}

const whole: ListMerge = { by: 'whole' };

function mergeOf(words: readonly string[]): ListMerge {
  const key = words.find((word) => word.startsWith('key='))?.slice('key='.length);
  if (key !== undefined)
    return { by: 'key', key, keeps: words.includes('retain') ? 'named-fields' : 'all-fields' };
  return words.includes('merge') ? { by: 'value' } : whole;
}

/**
 * The fields apiVersion and kind of an object at the top of a document; the generated table omits
 * them.
 */
const headers: readonly KindField[] = ['apiVersion', 'kind'].map((name) => ({
  number: 0,
  name,
  shape: 'single',
  type: 'string',
  required: false,
  merge: whole,
}));
