import { isDeepStrictEqual } from 'node:util';

/** An API object in its JSON form. */
export type JsonObject = Readonly<Record<string, unknown>>;

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Removes null and undefined fields, which mean absent in the API. Lists keep their length. Values
 * without such fields are not copied.
 */
export function withoutEmptyFields<T>(value: T): T {
  if (Array.isArray(value)) return filledItems(value) as T;
  return isJsonObject(value) ? (filledFields(value) as T) : value;
}

function filledItems(list: readonly unknown[]): readonly unknown[] {
  const filled = list.map((item) => withoutEmptyFields(item));
  return filled.every((item, index) => item === list[index]) ? list : filled;
}

function filledFields(object: JsonObject): JsonObject {
  let copied: [name: string, value: unknown][] | undefined;
  const names = Object.keys(object);
  for (const [index, name] of names.entries()) {
    const value = object[name];
    const filled = withoutEmptyFields(value);
    const isEmpty = value === undefined || value === null;
    if (copied === undefined && filled === value && !isEmpty) continue;
    copied ??= names.slice(0, index).map((before) => [before, object[before]]);
    if (!isEmpty) copied.push([name, filled]);
  }
  return copied === undefined ? object : Object.fromEntries(copied);
}

/** Compares two values that have no null or undefined fields. */
export function sameValue(a: unknown, b: unknown): boolean {
  return isDeepStrictEqual(a, b);
}
