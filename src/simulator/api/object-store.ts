import type { ApiResource } from '../../api/index.ts';
import { Ring, TypedEvents } from '../../lib/index.ts';
import { frozen, keyOf, type StoredObject } from './stored-object.ts';

/** Something that happened to an object, and in whose name. */
export interface StoreChange {
  readonly version: number;
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly resource: ApiResource;
  readonly object: StoredObject;
  /** As it was; undefined for a new one. */
  readonly before: StoredObject | undefined;
  readonly user: string;
}

interface Table {
  readonly objects: Map<string, StoredObject>;
  history: Ring<StoreChange>;
  /** Changes up to this version are forgotten. */
  forgotten: number;
}

/**
 * All objects by resource, and for a while what happened to them. One counter gives every change of any object its
 * version, so that versions tell which of two changes was first.
 */
export class ObjectStore {
  readonly #tables = new Map<string, Table>();
  readonly #historyLimit: number;
  readonly #changes = new TypedEvents<{ change: StoreChange }>((error) => {
    // A subscriber checks invariants: what it throws must end the test, not be swallowed.
    queueMicrotask(() => {
      throw error;
    });
  });
  #version = 1;

  constructor(historyLimit: number) {
    this.#historyLimit = historyLimit;
  }

  get version(): number {
    return this.#version;
  }

  get(resource: ApiResource, namespace: string | undefined, name: string): StoredObject | undefined {
    return this.#table(resource).objects.get(keyOf(namespace, name));
  }

  /** In the order of their namespaces and names. */
  all(resource: ApiResource): readonly StoredObject[] {
    return inOrder(this.#table(resource).objects);
  }

  put(resource: ApiResource, object: StoredObject, user: string): StoredObject {
    const table = this.#table(resource);
    const { namespace, name } = object.metadata;
    const before = table.objects.get(keyOf(namespace, name));
    const stored = this.#stamped(object);
    table.objects.set(keyOf(namespace, name), stored);
    this.#happened(table, { type: before ? 'MODIFIED' : 'ADDED', resource, object: stored, before, user });
    return stored;
  }

  remove(resource: ApiResource, object: StoredObject, user: string): void {
    const table = this.#table(resource);
    const { namespace, name } = object.metadata;
    const before = table.objects.get(keyOf(namespace, name));
    if (before === undefined) return;
    table.objects.delete(keyOf(namespace, name));
    this.#happened(table, { type: 'DELETED', resource, object: this.#stamped(object), before, user });
  }

  /** What happened after a version; undefined when some of it is forgotten. */
  changesAfter(resource: ApiResource, version: number): readonly StoreChange[] | undefined {
    const table = this.#table(resource);
    if (version < table.forgotten) return undefined;
    return table.history.toArray().filter((change) => change.version > version);
  }

  /** All objects as they were at a version; undefined when that is forgotten. */
  allAt(resource: ApiResource, version: number): readonly StoredObject[] | undefined {
    const undone = this.changesAfter(resource, version)?.toReversed();
    if (undone === undefined) return undefined;
    const objects = new Map(this.#table(resource).objects);
    for (const { object, before } of undone) {
      const key = keyOf(object.metadata.namespace, object.metadata.name);
      if (before === undefined) objects.delete(key);
      else objects.set(key, before);
    }
    return inOrder(objects);
  }

  /** Forgets all that happened: who wants to go on from an older version has to begin anew. */
  compact(): void {
    this.#version++;
    for (const table of this.#tables.values()) {
      table.history = new Ring(this.#historyLimit);
      table.forgotten = this.#version;
    }
  }

  /** Calls back at once for each change, while nothing else runs. */
  subscribe(subscriber: (change: StoreChange) => void): Disposable {
    return this.#changes.on('change', subscriber);
  }

  #stamped(object: StoredObject): StoredObject {
    this.#version++;
    return frozen({
      ...object,
      metadata: { ...object.metadata, resourceVersion: String(this.#version) },
    });
  }

  #happened(table: Table, change: Omit<StoreChange, 'version'>): void {
    const whole = { ...change, version: this.#version };
    const oldest = table.history.size === table.history.capacity ? table.history.shift() : undefined;
    if (oldest !== undefined) table.forgotten = oldest.version;
    table.history.push(whole);
    this.#changes.emit('change', whole);
  }

  #table({ group, plural }: ApiResource): Table {
    const name = `${group}/${plural}`;
    const known = this.#tables.get(name);
    if (known !== undefined) return known;
    const table: Table = { objects: new Map(), history: new Ring(this.#historyLimit), forgotten: 0 };
    this.#tables.set(name, table);
    return table;
  }
}

function inOrder(objects: ReadonlyMap<string, StoredObject>): readonly StoredObject[] {
  return [...objects].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, object]) => object);
}
