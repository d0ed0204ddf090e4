import { isJsonObject, type JsonObject } from '../../../api/index.ts';
import type { KindField, KindTable } from '../../../kinds/index.ts';
import { nullableFields } from './nullable-fields.ts';

/**
 * Drops fields that say nothing: an empty list or map, and a 0, '' or false where that is the same as not to say it. An
 * object that was written with them and one that was written without are stored alike.
 */
export class SilentFields {
  readonly #table: KindTable;
  readonly #nullable = nullableFields();
  readonly #telling = new Map<string, ReadonlySet<string>>();

  constructor(table: KindTable) {
    this.#table = table;
  }

  /** For an object that was decoded as this kind. */
  without(kind: string, object: JsonObject): JsonObject {
    const fields = this.#table.fieldsOf(kind);
    const telling = this.#tellingOf(kind);
    return Object.fromEntries(
      Object.entries(object).flatMap(([name, value]) => {
        const field = fields.get(name);
        if (field === undefined) return [[name, value]];
        const isKept = field.required || telling.has(name) || !isSilent(field, value);
        return isKept ? [[name, this.#within(field, value)]] : [];
      }),
    );
  }

  #within({ type, shape }: KindField, value: unknown): unknown {
    if (!this.#table.has(type)) return value;
    if (shape === 'list' && Array.isArray(value)) return value.map((item) => this.#object(type, item));
    if (shape === 'map' && isJsonObject(value))
      return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, this.#object(type, item)]));
    return this.#object(type, value);
  }

  #object(type: string, value: unknown): unknown {
    return isJsonObject(value) ? this.without(type, value) : value;
  }

  /** Of the kind and of those whose fields it took in. */
  #tellingOf(kind: string): ReadonlySet<string> {
    const known = this.#telling.get(kind);
    if (known !== undefined) return known;
    const inlined = [...this.#table.wireOf(kind).values()].filter(({ place }) => place === 'inlined');
    const own = this.#nullable.get(kind) ?? [];
    const all = new Set([...own, ...inlined.flatMap(({ type }) => [...this.#tellingOf(type)])]);
    this.#telling.set(kind, all);
    return all;
  }
}

const plainTypes: ReadonlySet<string> = new Set(['string', 'bool', 'int32', 'int64', 'bytes']);

function isSilent({ shape, type }: KindField, value: unknown): boolean {
  if (shape === 'list') return Array.isArray(value) && value.length === 0;
  if (shape === 'map') return isJsonObject(value) && Object.keys(value).length === 0;
  return plainTypes.has(type) && (value === '' || value === 0 || value === false);
}
