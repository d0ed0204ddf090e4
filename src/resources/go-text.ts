import { fnv1a32 } from '../lib/index.ts';

/**
 * A field of a Go struct for a checksum. Kubelet checkpoints contain a checksum over Go's dump of a
 * value. In such a dump, the fields of a struct have their type as prefix; elements of maps and
 * lists do not.
 */
export type GoField = readonly [name: string, type: string, text: string];

export function goStruct(fields: readonly GoField[]): string {
  return `{${fields.map(([name, type, text]) => `${name}:(${type})${text}`).join(' ')}}`;
}

export function goMap<V>(entries: ReadonlyMap<string | number, V>, textOf: (value: V) => string): string {
  const sorted = [...entries].toSorted(([one], [other]) => compareKeys(one, other));
  return `map[${sorted.map(([key, value]) => `${key}:${textOf(value)}`).join(' ')}]`;
}

export function goList<V>(values: readonly V[], textOf: (value: V) => string = String): string {
  return `[${values.map(textOf).join(' ')}]`;
}

/**
 * Returns the checksum of a Go struct as the Go kubelet computes it for checkpoints: over Go's dump
 * of a pointer to the struct, with its type name and these fields.
 */
export function goChecksum(type: string, fields: readonly GoField[]): number {
  return fnv1a32(`(*${type})${goStruct(fields)}`);
}

/** Compares keys like Go: numbers by value, strings by bytes. */
function compareKeys(one: string | number, other: string | number): number {
  if (typeof one === 'number' && typeof other === 'number') return one - other;
  return Buffer.compare(Buffer.from(`${one}`), Buffer.from(`${other}`));
}

/** Sorts keys in the order of Go's JSON encoder. */
export function sortedByKey<K extends string | number, V>(entries: Iterable<readonly [K, V]>): Map<K, V> {
  return new Map([...entries].toSorted(([one], [other]) => compareKeys(one, other)));
}

/**
 * Returns the value as object. If the value is not an object, throws an error that contains its
 * name.
 */
export function jsonObject(value: unknown, what: string): Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new Error(`${what} is not an object`);
  return value as Readonly<Record<string, unknown>>;
}
