import { isDeepStrictEqual } from 'node:util';

/** An object as it goes over the wire. */
export type JsonObject = Readonly<Record<string, unknown>>;

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** To the API a field that is null or undefined is not there. Lists keep their length. */
export function withoutEmptyFields<T>(value: T): T {
  if (Array.isArray(value)) return value.map((item) => withoutEmptyFields<unknown>(item)) as T;
  if (!isJsonObject(value)) return value;
  const entries = Object.entries(value).filter(([, inner]) => inner !== undefined && inner !== null);
  return Object.fromEntries(entries.map(([name, inner]) => [name, withoutEmptyFields(inner)])) as T;
}

/** Both must be without empty fields. */
export function sameValue(a: unknown, b: unknown): boolean {
  return isDeepStrictEqual(a, b);
}
