import { KubelingError } from '../lib/index.ts';
import { kindTable } from './gen/kinds.ts';

/** Types that are one value to users, whatever they are on the wire. */
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
] as const;

export type ScalarType = (typeof scalarTypes)[number];

export interface KindField {
  readonly name: string;
  readonly shape: 'single' | 'list' | 'map';
  /** A scalar type, or the name of another kind. */
  readonly type: string;
  /** Whether it is written even when it is empty. */
  readonly required: boolean;
  readonly merge: ListMerge;
}

/** What a strategic merge patch does to a list; anything that is no list is `whole`. */
export type ListMerge =
  /** The new list takes the place of the old one. */
  | { readonly by: 'whole' }
  /** A set of single values: those of the patch join it. */
  | { readonly by: 'value' }
  /** Items are the same if they agree in this field; `keeps` says whether fields the patch leaves out may stay. */
  | { readonly by: 'key'; readonly key: string; readonly keeps: 'all-fields' | 'named-fields' };

/** The fields of one kind by name, those of inlined kinds among them. */
export type KindFields = ReadonlyMap<string, KindField>;

export function isScalarType(type: string): type is ScalarType {
  return (scalarTypes as readonly string[]).includes(type);
}

/** Each kind is read from the table when it is first asked for: few of them ever are. */
export class KindTable {
  readonly #lines: ReadonlyMap<string, string>;
  readonly #known = new Map<string, KindFields>();

  constructor(text: string = kindTable) {
    const lines = text.trim().split('\n');
    this.#lines = new Map(lines.map((line) => [line.slice(0, line.indexOf('|')), line]));
  }

  has(kind: string): boolean {
    return this.#lines.has(kind);
  }

  /** Asking for a kind that is not in the table is a bug. */
  fieldsOf(kind: string): KindFields {
    const known = this.#known.get(kind);
    if (known !== undefined) return known;
    const line = this.#lines.get(kind);
    if (line === undefined) throw new KubelingError('BUG', `There is no kind ${kind} in the table of kinds`);
    const fields = new Map(this.#read(line).map((field) => [field.name, field]));
    this.#known.set(kind, fields);
    return fields;
  }

  #read(line: string): KindField[] {
    const fields = line
      .split('|')
      .slice(1)
      .flatMap((text) => this.#field(text));
    const isTopLevel = fields.some(({ name, type }) => name === 'metadata' && type.endsWith('Meta'));
    return isTopLevel ? [...headers, ...fields] : fields;
  }

  #field(text: string): readonly KindField[] {
    const [, name = '', ...words] = text.split(' ');
    const [first = '', second = ''] = words;
    if (first === 'inline') return [...this.fieldsOf(second).values()];
    const shape = first === 'list' || first === 'map' ? first : 'single';
    const type = shape === 'single' ? first : second;
    return [{ name, shape, type, required: words.includes('+required'), merge: mergeOf(words) }];
  }
}

const whole: ListMerge = { by: 'whole' };

function mergeOf(words: readonly string[]): ListMerge {
  const key = words.find((word) => word.startsWith('key='))?.slice('key='.length);
  if (key !== undefined)
    return { by: 'key', key, keeps: words.includes('retain') ? 'named-fields' : 'all-fields' };
  return words.includes('merge') ? { by: 'value' } : whole;
}

/** What an object at the top of a document says of itself; the table leaves it out. */
const headers: readonly KindField[] = ['apiVersion', 'kind'].map((name) => ({
  name,
  shape: 'single',
  type: 'string',
  required: false,
  merge: whole,
}));
