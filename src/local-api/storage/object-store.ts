import type { ApiResource } from '../../api/index.ts';
import { Ring, TypedEvents } from '../../lib/index.ts';
import type { ObjectChange, ObjectReader } from '../api/api-types.ts';
import { frozen, objectKey, type StoredObject } from '../api/stored-object.ts';
import { type HistoryEntry, ObjectTable } from './object-table.ts';
import { StorageUsage } from './storage-usage.ts';

/** Something that happened to an object, and in whose name. */
export interface StoreChange extends ObjectChange {
  readonly user: string;
}

export interface VersionedStoreOptions {
  /** So many changes of each resource are remembered at most. */
  readonly historyLimit: number;
  /** Changes older than that may be forgotten when new ones come; all are kept, up to the limit, unless given. */
  readonly historyMs?: number;
  /** About so much memory may what is remembered of each resource take; any unless given. */
  readonly historyBytes?: number;
  /** Needed where age counts: a clock that never goes back. */
  readonly nowMs?: () => number;
}

/** What is known of an earlier life of the store. */
export interface RestoredState {
  /** The newest version that was ever given out. */
  readonly version: number;
  readonly objects: readonly { readonly resource: ApiResource; readonly object: StoredObject }[];
  /**
   * The newest changes without a gap, in order. `before` may be left out where an earlier change of the log tells it;
   * where nothing tells how an object was before it was changed, what happened up to there is forgotten.
   */
  readonly log: readonly ObjectChange[];
  /** All up to this version is not in the log; by its first change unless given. */
  readonly compacted?: number;
}

/**
 * All objects by resource, and for a while what happened to them. One counter gives every change of any object its
 * version, so that versions tell which of two changes was first.
 */
export class VersionedStore implements ObjectReader {
  readonly #tables = new Map<string, ObjectTable>();
  readonly #options: VersionedStoreOptions;
  readonly #undelivered: StoreChange[] = [];
  readonly #changes = new TypedEvents<{ change: StoreChange }>((error) => {
    // A subscriber checks invariants: what it throws must end the test, not be swallowed.
    queueMicrotask(() => {
      throw error;
    });
  });
  #version = 1;
  #lastChange = 0;
  /** What happened up to this version is unknown to all tables. */
  #compacted = 0;
  #delivery: 'idle' | 'busy' = 'idle';
  /** The memory that the stored objects take. */
  readonly usage = new StorageUsage();

  constructor(options: VersionedStoreOptions) {
    this.#options = options;
  }

  /** A store that goes on from an earlier life. */
  static restore(
    { version, objects, log, compacted }: RestoredState,
    options: VersionedStoreOptions,
  ): VersionedStore {
    const store = new VersionedStore(options);
    store.#version = Math.max(1, version);
    store.#compacted = compacted ?? (log[0] === undefined ? version : log[0].version - 1);
    for (const { resource, object } of objects) {
      const stored = frozen(object);
      store.usage.replace(store.#table(resource).set(stored), stored);
    }
    const last = new Map<string, StoredObject>();
    for (const change of log) store.#restoreChange(change, last);
    return store;
  }

  /** The newest version there is. */
  get version(): number {
    return this.#version;
  }

  /** Of the newest change in this life; 0 before the first one. */
  get lastChange(): number {
    return this.#lastChange;
  }

  get(resource: ApiResource, namespace: string | undefined, name: string): StoredObject | undefined {
    return this.#table(resource).get(objectKey(namespace, name));
  }

  /** In the order of their namespaces and names. */
  all(resource: ApiResource, namespace?: string): readonly StoredObject[] {
    return this.#table(resource).range(namespace, '').toArray();
  }

  /** The objects of a namespace, or of all, whose keys come at or after the one given. */
  from(resource: ApiResource, namespace: string | undefined, start: string): IteratorObject<StoredObject> {
    return this.#table(resource).range(namespace, start);
  }

  /** As they were at a version; undefined when that is forgotten. */
  fromAt(
    resource: ApiResource,
    namespace: string | undefined,
    start: string,
    version: number,
  ): IteratorObject<StoredObject> | undefined {
    return this.#table(resource).rangeAt(namespace, start, version);
  }

  allAt(resource: ApiResource, version: number): readonly StoredObject[] | undefined {
    return this.fromAt(resource, undefined, '', version)?.toArray();
  }

  put(resource: ApiResource, object: StoredObject, user: string): StoredObject {
    const table = this.#table(resource);
    const stored = this.#stamped(object);
    const before = table.set(stored);
    this.usage.replace(before, stored);
    this.#record(table, { type: before ? 'MODIFIED' : 'ADDED', resource, object: stored, before, user });
    return stored;
  }

  /** The object as it was when it went, with the version of its end; undefined when it was not there. */
  remove(
    resource: ApiResource,
    namespace: string | undefined,
    name: string,
    user: string,
  ): StoredObject | undefined {
    const table = this.#table(resource);
    const before = table.delete(objectKey(namespace, name));
    if (before === undefined) return undefined;
    this.usage.replace(before, undefined);
    const object = this.#stamped(before);
    this.#record(table, { type: 'DELETED', resource, object, before, user });
    return object;
  }

  /** What happened after a version; undefined when some of it is forgotten. */
  changesAfter(resource: ApiResource, version: number): readonly ObjectChange[] | undefined {
    return this.#table(resource).changesAfter(version);
  }

  /** Who has seen up to this version of a resource, or more, can go on from there. */
  compactedUpTo(resource: ApiResource): number {
    return this.#table(resource).forgotten;
  }

  /**
   * Forgets all that happened: who wants to go on from an older version than the newest has to begin anew. No version
   * is given out for it, as each is that of a change.
   */
  compact(): void {
    this.#compacted = this.#version;
    for (const table of this.#tables.values()) table.clearHistory(this.#version);
  }

  /** Calls back at once for each change, in order, while nothing else runs; also for changes the callbacks make. */
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

  #record(table: ObjectTable, change: Omit<StoreChange, 'version'>): void {
    const whole = { ...change, version: this.#version };
    const { historyMs = Number.POSITIVE_INFINITY, nowMs = () => 0 } = this.#options;
    this.#lastChange = whole.version;
    this.#addToHistory(table, whole, nowMs() - historyMs);
    this.#undelivered.push(whole);
    this.#deliverAll();
  }

  /** Who is told of a change may make another one: all the others hear of the first one first. */
  #deliverAll(): void {
    if (this.#delivery === 'busy') return;
    this.#delivery = 'busy';
    try {
      for (let next = this.#undelivered.shift(); next !== undefined; next = this.#undelivered.shift())
        this.#changes.emit('change', next);
    } finally {
      this.#delivery = 'idle';
    }
  }

  #restoreChange(change: ObjectChange, last: Map<string, StoredObject>): void {
    const { resource, object, type } = change;
    const table = this.#table(resource);
    const key = `${resource.group}/${resource.plural}/${objectKey(object.metadata.namespace, object.metadata.name)}`;
    const before = change.before ?? last.get(key);
    if (type === 'DELETED') last.delete(key);
    else last.set(key, frozen(object));
    const whole = { ...change, object: frozen(object), before: frozen(before) };
    if (type !== 'ADDED' && before === undefined) table.clearHistory(change.version);
    else this.#addToHistory(table, whole, Number.NEGATIVE_INFINITY);
  }

  #addToHistory(table: ObjectTable, change: ObjectChange, oldestMs: number): void {
    const { nowMs = () => 0, historyBytes: mostBytes = Number.POSITIVE_INFINITY } = this.#options;
    const bytes = mostBytes === Number.POSITIVE_INFINITY ? 0 : this.usage.sizeOf(change.object);
    table.addToHistory({ change, atMs: nowMs(), bytes }, { oldestMs, maxBytes: mostBytes });
  }

  #table({ group, plural }: ApiResource): ObjectTable {
    const name = `${group}/${plural}`;
    const known = this.#tables.get(name);
    if (known !== undefined) return known;
    const history = () => new Ring<HistoryEntry>(this.#options.historyLimit);
    const table = new ObjectTable(history, this.#compacted);
    this.#tables.set(name, table);
    return table;
  }
}
