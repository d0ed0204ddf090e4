import type { ApiObject } from '../client/client.ts';
/** An object with a name and a UID. */
export type Named<T extends ApiObject> = T & {
  readonly metadata: { readonly name: string; readonly uid: string };
};

/** A change of one object. A recreated object is reported as deleted and added. */
export type ObjectChange<T> =
  | { readonly type: 'added'; readonly object: T }
  | { readonly type: 'updated'; readonly object: T; readonly old: T }
  /** The deleted object as it was last cached: its final state may not have been received. */
  | { readonly type: 'deleted'; readonly object: T };

/** The complete set of objects in a response. */
export interface Snapshot<T extends ApiObject> {
  readonly objects: Iterable<Named<T>>;
  /** Keys of objects that exist but are invalid: their cached versions stay. */
  readonly unreadable: ReadonlySet<string>;
}

/** Returns the cache key: `namespace/name`, or the name of a cluster-scoped object. */
export function storeKey(name: string, namespace?: string | undefined): string {
  return namespace === undefined || namespace === '' ? name : `${namespace}/${name}`;
}

export function reflectedKey({ metadata }: Named<ApiObject>): string {
  return storeKey(metadata.name, metadata.namespace);
}

/**
 * The cached objects by namespace and name, in order of arrival. Each method returns the changes it
 * made.
 */
export class ReflectorStore<T extends ApiObject> {
  #objects = new Map<string, Named<T>>();
  #list: readonly Named<T>[] | undefined;

  get size(): number {
    return this.#objects.size;
  }

  get(key: string): Named<T> | undefined {
    return this.#objects.get(key);
  }

  /** Returns all objects: the same array until one of them changes. */
  list(): readonly Named<T>[] {
    this.#list ??= [...this.#objects.values()];
    return this.#list;
  }

  /**
   * Adds or updates an object. Ignores the cached version and older ones, because a watch may
   * deliver duplicates.
   */
  put(object: Named<T>): readonly ObjectChange<Named<T>>[] {
    const key = reflectedKey(object);
    const old = this.#objects.get(key);
    if (old !== undefined && isOld(object, old)) return [];
    this.#change(() => this.#objects.set(key, object));
    return changesBetween(old, object);
  }

  /**
   * Removes an object by its key. A given UID must match the cached object, because the event may
   * be about an older object of that name. A given version must not be older than the cached one,
   * because an object may stop matching the selector and match it again.
   */
  remove(
    key: string,
    deleted: { readonly uid?: string | undefined; readonly resourceVersion?: string | undefined },
  ) {
    const held = this.#objects.get(key);
    if (held === undefined || (deleted.uid !== undefined && deleted.uid !== held.metadata.uid)) return [];
    if (isOlderVersion(deleted.resourceVersion ?? '', versionOf(held))) return [];
    this.#change(() => this.#objects.delete(key));
    return [deletion(held)];
  }

  /** Replaces all objects in one step, so that a partial set is never visible. */
  replace({ objects, unreadable }: Snapshot<T>): readonly ObjectChange<Named<T>>[] {
    const before = this.#objects;
    const after = new Map<string, Named<T>>();
    for (const object of objects)
      after.set(reflectedKey(object), same(before.get(reflectedKey(object)), object));
    for (const key of unreadable) {
      const held = before.get(key);
      if (held !== undefined && !after.has(key)) after.set(key, held);
    }
    this.#change(() => {
      this.#objects = after;
    });
    const gone = [...before].filter(([key]) => !after.has(key)).map(([, object]) => deletion(object));
    return [...gone, ...[...after].flatMap(([key, object]) => changesBetween(before.get(key), object))];
  }

  clear(): void {
    this.#change(() => this.#objects.clear());
  }

  #change(apply: () => void): void {
    apply();
    this.#list = undefined;
  }
}

function deletion<T>(object: T): ObjectChange<T> {
  return { type: 'deleted', object };
}

function versionOf(object: ApiObject): string {
  return object.metadata?.resourceVersion ?? '';
}

function isSame(one: Named<ApiObject>, other: Named<ApiObject>): boolean {
  const version = versionOf(one);
  return one.metadata.uid === other.metadata.uid && version !== '' && version === versionOf(other);
}

function isOld(received: Named<ApiObject>, held: Named<ApiObject>): boolean {
  return isSame(received, held) || isOlderVersion(versionOf(received), versionOf(held));
}

/**
 * Returns the cached object if the received one has the same version, so that unchanged objects can
 * be compared by identity.
 */
function same<T extends ApiObject>(held: Named<T> | undefined, received: Named<T>): Named<T> {
  return held !== undefined && isSame(received, held) ? held : received;
}

function changesBetween<T extends ApiObject>(
  old: Named<T> | undefined,
  object: Named<T>,
): readonly ObjectChange<Named<T>>[] {
  if (old === object) return [];
  if (old === undefined) return [{ type: 'added', object }];
  if (old.metadata.uid === object.metadata.uid) return [{ type: 'updated', object, old }];
  return [deletion(old), { type: 'added', object }];
}

const number = /^[1-9][0-9]*$/;

/**
 * Whether the first API version is older than the second. False if either is not an integer,
 * because such versions have no order.
 */
export function isOlderVersion(one: string, other: string): boolean {
  if (!number.test(one) || !number.test(other)) return false;
  return one.length === other.length ? one < other : one.length < other.length;
}
