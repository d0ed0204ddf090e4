import type { Ring } from '../../lib/index.ts';
import type { StoredChange } from '../api/api-types.ts';
import { type StoredObject, storedObjectKey } from '../api/stored-object.ts';

export interface HistoryEntry {
  readonly change: StoredChange;
  readonly atMs: number;
  /** The approximate memory size of a change. */
  readonly bytes: number;
}

/** Limits of the history; old changes are dropped when new ones are added. */
export interface HistoryLimits {
  readonly oldestMs: number;
  readonly maxBytes: number;
}

/** The objects of one resource sorted by key, with their history. */
export class ObjectTable {
  readonly #objects = new Map<string, StoredObject>();
  /** The keys are always sorted: a list needs no sorting, and a namespace is a contiguous range. */
  readonly #keys: string[] = [];
  readonly #newHistory: () => Ring<HistoryEntry>;
  #history: Ring<HistoryEntry>;
  #historyBytes = 0;
  #compacted: number;

  constructor(newHistory: () => Ring<HistoryEntry>, compacted: number) {
    this.#newHistory = newHistory;
    this.#history = newHistory();
    this.#compacted = compacted;
  }

  /** The history contains the changes after this version; older ones were dropped. */
  get forgotten(): number {
    return this.#compacted;
  }

  get(key: string): StoredObject | undefined {
    return this.#objects.get(key);
  }

  /** Stores an object and returns the previous one. */
  set(object: StoredObject): StoredObject | undefined {
    const key = storedObjectKey(object.metadata.namespace, object.metadata.name);
    const before = this.#objects.get(key);
    if (before === undefined) this.#keys.splice(lowerBound(this.#keys, key), 0, key);
    this.#objects.set(key, object);
    return before;
  }

  delete(key: string): StoredObject | undefined {
    const before = this.#objects.get(key);
    if (before === undefined) return undefined;
    this.#objects.delete(key);
    this.#keys.splice(lowerBound(this.#keys, key), 1);
    return before;
  }

  range(namespace: string | undefined, start: string): IteratorObject<StoredObject> {
    return this.#keysFrom(namespace, start)
      .map((key) => this.#objects.get(key))
      .filter((object) => object !== undefined);
  }

  /**
   * The objects at an earlier version, computed by reverting later changes; undefined if those were
   * dropped from the history.
   */
  rangeAt(
    namespace: string | undefined,
    start: string,
    version: number,
  ): IteratorObject<StoredObject> | undefined {
    const undone = this.changesAfter(version);
    if (undone === undefined) return undefined;
    if (undone.length === 0) return this.range(namespace, start);
    const then = new Map<string, StoredObject | undefined>();
    for (const { object, before } of undone.toReversed()) then.set(keyOfObject(object), before);
    const gone = [...then.keys()].filter((key) => !this.#objects.has(key)).sort();
    const prefix = namespace === undefined ? '' : `${namespace}/`;
    const matching = gone.filter((key) => key >= start && key.startsWith(prefix));
    return merged(this.#keysFrom(namespace, start), matching)
      .map((key) => (then.has(key) ? then.get(key) : this.#objects.get(key)))
      .filter((object) => object !== undefined);
  }

  changesAfter(version: number): readonly StoredChange[] | undefined {
    if (version < this.#compacted) return undefined;
    if ((this.#history.last?.change.version ?? 0) <= version) return [];
    return this.#history.toArray().flatMap(({ change }) => (change.version > version ? [change] : []));
  }

  /** The latest change is always retained in the history, whatever its size. */
  addToHistory(remembered: HistoryEntry, { oldestMs, maxBytes }: HistoryLimits): void {
    const isFull = () =>
      this.#history.size === this.#history.capacity || this.#historyBytes + remembered.bytes > maxBytes;
    for (let first = this.#first(); first !== undefined; first = this.#first()) {
      if (!isFull() && first.atMs >= oldestMs) break;
      this.#compacted = first.change.version;
      this.#historyBytes -= first.bytes;
      this.#history.shift();
    }
    this.#historyBytes += remembered.bytes;
    this.#history.push(remembered);
  }

  clearHistory(version: number): void {
    this.#history = this.#newHistory();
    this.#historyBytes = 0;
    this.#compacted = version;
  }

  #first(): HistoryEntry | undefined {
    const [first] = this.#history;
    return first;
  }

  /** A copy of the sorted keys, because objects may be added and deleted during the iteration. */
  #keysFrom(namespace: string | undefined, start: string): IteratorObject<string> {
    const prefix = namespace === undefined ? '' : `${namespace}/`;
    const from = lowerBound(this.#keys, start > prefix ? start : prefix);
    // '0' follows '/' in ASCII, so this is the end of the range of the namespace.
    const to = namespace === undefined ? this.#keys.length : lowerBound(this.#keys, `${namespace}0`);
    return this.#keys.slice(from, Math.max(from, to)).values();
  }
}

function keyOfObject({ metadata }: StoredObject): string {
  return storedObjectKey(metadata.namespace, metadata.name);
}

/** The index of a string in a sorted list, or where it would be inserted. */
function lowerBound(sorted: readonly string[], text: string): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((sorted[middle] ?? '') < text) low = middle + 1;
    else high = middle;
  }
  return low;
}

function* merged(keys: Iterable<string>, others: readonly string[]): Generator<string, undefined> {
  let next = 0;
  for (const key of keys) {
    for (; next < others.length && (others[next] ?? '') < key; next++) yield others[next] ?? '';
    yield key;
  }
  yield* others.slice(next);
  return undefined;
}
