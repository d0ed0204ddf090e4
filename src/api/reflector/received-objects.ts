import { describeError } from '../../lib/index.ts';
import type { ApiObject } from '../client/client.ts';
import { type Named, reflectedKey, type Snapshot, storeKey } from './store.ts';

/**
 * Returns the problem of an invalid object, to be appended to "... as"; undefined if the object is
 * valid.
 */
export type ObjectCheck<T> = (object: T) => string | undefined;

/** A received object after its validation. */
export type ReadObject<T extends ApiObject> =
  | { readonly is: 'good'; readonly object: Named<T> }
  /** The key is undefined if the object has no valid name. */
  | { readonly is: 'bad'; readonly problem: string; readonly key: string | undefined };

/** How received objects are validated, and which part of them is cached. */
export interface Reading<T extends ApiObject> {
  readonly check: ObjectCheck<Named<T>>;
  readonly keep: (object: Named<T>) => Named<T>;
}

/** Validates a received object, which may be any JSON value. */
export function readObject<T extends ApiObject>(received: T, reading: Reading<T>): ReadObject<T> {
  const key = wireKey(received);
  if (key === undefined) return { is: 'bad', problem: 'it has no name', key };
  const uid: unknown = received.metadata?.uid;
  if (typeof uid !== 'string' || uid === '') return { is: 'bad', problem: `${key} has no UID`, key };
  const object = received as Named<T>;
  const bad = (problem: string): ReadObject<T> => ({ is: 'bad', problem: `${key} ${problem}`, key });
  try {
    const problem = reading.check(object);
    return problem === undefined
      ? { is: 'good', object: reading.keep(object) }
      : bad(`is not valid: ${problem}`);
  } catch (error) {
    return bad(`cannot be read: ${describeError(error)}`);
  }
}

/**
 * Removes `metadata.managedFields`, which may be as large as the rest of the object and are not
 * used.
 */
export function withoutWriters<T extends ApiObject>(object: Named<T>): Named<T> {
  if (!('managedFields' in object.metadata)) return object;
  const { managedFields: _, ...metadata } = object.metadata;
  return { ...object, metadata } as Named<T>;
}

/** Returns the cache key of an object; undefined if it has no name. */
export function wireKey(received: ApiObject): string | undefined {
  const { name, namespace } = received?.metadata ?? {};
  return typeof name === 'string' && name !== '' ? storeKey(name, namespace) : undefined;
}

/**
 * Collects the initial objects of a watch until they are complete; the cache keeps the old objects
 * until then.
 */
export class InitialObjects<T extends ApiObject> {
  readonly #objects = new Map<string, Named<T>>();
  readonly #unreadable = new Set<string>();

  add(read: ReadObject<T>): void {
    if (read.is === 'good') this.#put(read.object);
    else if (read.key !== undefined) this.#unreadable.add(read.key);
  }

  remove(key: string): void {
    this.#objects.delete(key);
    this.#unreadable.delete(key);
  }

  snapshot(): Snapshot<T> {
    return { objects: this.#objects.values(), unreadable: this.#unreadable };
  }

  #put(object: Named<T>): void {
    this.#objects.set(reflectedKey(object), object);
    this.#unreadable.delete(reflectedKey(object));
  }
}
