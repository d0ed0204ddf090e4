import type { ApiResource } from '../../api/index.ts';
import { Ring, TypedEvents } from '../../lib/index.ts';
import type { ObjectReader, StoredChange } from '../api/api-types.ts';
import { frozen, type StoredObject, storedObjectKey } from '../api/stored-object.ts';
import { type HistoryEntry, ObjectTable } from './object-table.ts';
import { StorageUsage } from './storage-usage.ts';

/** A change with the user who made it. */
export interface StoreChange extends StoredChange {
  readonly user: string;
}

export interface VersionedStoreOptions {
  /** The maximum number of retained changes of each resource. */
  readonly historyLimit: number;
  /**
   * Changes older than this are dropped when new ones are added; by default only the limit applies.
   */
  readonly historyMs?: number;
  /** The approximate memory limit of the history of each resource; unlimited by default. */
  readonly historyBytes?: number;
  /** A monotonic clock, required for historyMs. */
  readonly nowMs?: () => number;
}

/** The persisted state of the store. */
export interface RestoredState {
  /** The highest assigned version. */
  readonly version: number;
  readonly objects: readonly { readonly resource: ApiResource; readonly object: StoredObject }[];
  /**
   * The latest changes, sorted by version, without a gap. A change may omit `before` if an earlier
   * change in the log has the object before it; if none has it, the history up to the change is
   * dropped.
   */
  readonly log: readonly StoredChange[];
  /** Changes up to this version are not in the log; derived from the first change by default. */
  readonly compacted?: number;
}

/**
 * The objects of all resources in memory, with a history of changes for watches and exact lists
 * (the watch cache). One counter assigns a version to each change of any object, so that versions
 * order all changes.
 */
export class VersionedStore implements ObjectReader {
  readonly #tables = new Map<string, ObjectTable>();
  readonly #options: VersionedStoreOptions;
  readonly #undelivered: StoreChange[] = [];
  readonly #changes = new TypedEvents<{ change: StoreChange }>((error) => {
    // An error of a subscriber does not fail the write: it is thrown later as an uncaught
    // exception, so that it also fails tests whose subscribers check invariants.
    queueMicrotask(() => {
      throw error;
    });
  });
  #version = 1;
  #lastChange = 0;
  /** The history of all tables starts after this version. */
  #compacted = 0;
  #delivery: 'idle' | 'busy' = 'idle';
  /** The memory that the stored objects use. */
  readonly usage = new StorageUsage();

  constructor(options: VersionedStoreOptions) {
    this.#options = options;
  }

  /** Creates a store from the persisted state. */
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

  /** The current version. */
  get version(): number {
    return this.#version;
  }

  /** The version of the latest change since the start of the process; 0 before the first change. */
  get lastChange(): number {
    return this.#lastChange;
  }

  get(resource: ApiResource, namespace: string | undefined, name: string): StoredObject | undefined {
    return this.#table(resource).get(storedObjectKey(namespace, name));
  }

  /** The objects of a resource, sorted by namespace and name. */
  all(resource: ApiResource, namespace?: string): readonly StoredObject[] {
    return this.#table(resource).range(namespace, '').toArray();
  }

  /** The objects of a namespace, or of all namespaces, starting at the given key. */
  from(resource: ApiResource, namespace: string | undefined, start: string): IteratorObject<StoredObject> {
    return this.#table(resource).range(namespace, start);
  }

  /** The objects at a version; undefined if the history of that version was dropped. */
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

  /**
   * Deletes an object and returns it with the version of its deletion; undefined if it did not
   * exist.
   */
  remove(
    resource: ApiResource,
    namespace: string | undefined,
    name: string,
    user: string,
  ): StoredObject | undefined {
    const table = this.#table(resource);
    const before = table.delete(storedObjectKey(namespace, name));
    if (before === undefined) return undefined;
    this.usage.replace(before, undefined);
    const object = this.#stamped(before);
    this.#record(table, { type: 'DELETED', resource, object, before, user });
    return object;
  }

  /** The changes after a version; undefined if some of them were dropped. */
  changesAfter(resource: ApiResource, version: number): readonly StoredChange[] | undefined {
    return this.#table(resource).changesAfter(version);
  }

  /** The lowest version from which a watch of the resource can start. */
  compactedUpTo(resource: ApiResource): number {
    return this.#table(resource).forgotten;
  }

  /**
   * Drops the history: watches from versions below the current one must start again. Does not
   * assign a version.
   */
  compact(): void {
    this.#compacted = this.#version;
    for (const table of this.#tables.values()) table.clearHistory(this.#version);
  }

  /**
   * Calls the subscriber synchronously for each change, in order, also for changes that subscribers
   * make.
   */
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
    const versioned = { ...change, version: this.#version };
    const { historyMs = Number.POSITIVE_INFINITY, nowMs = () => 0 } = this.#options;
    this.#lastChange = versioned.version;
    this.#addToHistory(table, versioned, nowMs() - historyMs);
    this.#undelivered.push(versioned);
    this.#deliverAll();
  }

  /** A change that a subscriber makes is delivered to all subscribers after the current one. */
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

  #restoreChange(change: StoredChange, last: Map<string, StoredObject>): void {
    const { resource, object, type } = change;
    const table = this.#table(resource);
    const key = `${resource.group}/${resource.plural}/${storedObjectKey(object.metadata.namespace, object.metadata.name)}`;
    const before = change.before ?? last.get(key);
    if (type === 'DELETED') last.delete(key);
    else last.set(key, frozen(object));
    const frozenChange = { ...change, object: frozen(object), before: frozen(before) };
    if (type !== 'ADDED' && before === undefined) table.clearHistory(change.version);
    else this.#addToHistory(table, frozenChange, Number.NEGATIVE_INFINITY);
  }

  #addToHistory(table: ObjectTable, change: StoredChange, oldestMs: number): void {
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
