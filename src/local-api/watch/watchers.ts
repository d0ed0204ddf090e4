import type { ApiResource } from '../../api/index.ts';
import { type Clock, describeError, type Random } from '../../lib/index.ts';
import type { ApiRequest, ResourceEntry, StoredChange } from '../api/api-types.ts';
import { type ServedWatchEvent, statusOf } from '../api/responses.ts';
import { resourceVersionTooLarge, resourceVersionTooOld, unavailable } from '../api/status-errors.ts';
import { type ListOptions, versionOf } from '../registry/list-options.ts';
import { asResource, storedResource } from '../registry/reads.ts';
import { type Selection, selection } from '../selectors/selection.ts';
import type { Durability } from '../storage/durability.ts';
import type { VersionedStore } from '../storage/versioned-store.ts';
import { bookmark, ChangeEvent, Watcher } from './watcher.ts';

export interface WatchersOptions {
  readonly store: VersionedStore;
  readonly durability: Durability;
  readonly clock: Clock;
  readonly random: Random;
  /** The maximum number of pending events of a watcher. */
  readonly maxPending: number;
}

interface WatchRequest {
  readonly request: ApiRequest;
  readonly entry: ResourceEntry;
  readonly options: ListOptions;
  readonly selection: Selection;
}

interface InitialEvents {
  /**
   * The watch starts after this version: earlier changes are in the initial events or not needed.
   */
  readonly from: number;
  readonly events: Iterable<ServedWatchEvent>;
  readonly outcome: 'open' | 'ends';
}

const minTimeoutSeconds = 1_800;

/** Serves all watches. Changes are delivered only when they are durable. */
export class Watchers implements Disposable {
  readonly #options: WatchersOptions;
  readonly #watchers = new Map<string, Set<Watcher>>();
  readonly #subscriptions: readonly Disposable[];
  /** Changes that are not durable yet, in order. */
  readonly #uncommitted: StoredChange[] = [];

  constructor(options: WatchersOptions) {
    this.#options = options;
    const { store, durability } = options;
    this.#subscriptions = [
      store.subscribe((change) => this.#onChange(change)),
      durability.onCommitted((version) => this.#release(version)),
    ];
  }

  get size(): number {
    return this.#watchers.values().reduce((sum, { size }) => sum + size, 0);
  }

  /** Starts a watch when its events are first read. Throws a StatusError for an invalid request. */
  open(
    request: ApiRequest,
    entry: ResourceEntry,
    options: ListOptions,
    signal: AbortSignal,
  ): AsyncIterable<ServedWatchEvent> {
    const { store } = this.#options;
    const requested = versionOf(options.resourceVersion);
    if (options.initialEvents === 'enabled' && requested !== undefined && requested > store.version)
      throw resourceVersionTooLarge(options.resourceVersion, store.version);
    const watch: WatchRequest = { request, entry, options, selection: selection(request, entry) };
    return { [Symbol.asyncIterator]: () => this.#run(watch, signal) };
  }

  /** Ends all watches. */
  [Symbol.dispose](): void {
    for (const link of this.#subscriptions) link[Symbol.dispose]();
    for (const watcher of [...this.#watchers.values()].flatMap((set) => [...set])) watcher.end();
  }

  async *#run(watch: WatchRequest, signal: AbortSignal): AsyncGenerator<ServedWatchEvent, void, undefined> {
    const { from, events, outcome } = this.#initialEvents(watch);
    const watcher = this.#newWatcher(watch, from);
    const others = this.#watchersOf(storedResource(watch.entry));
    if (outcome === 'open') others.add(watcher);
    try {
      await this.#whenDurable(signal);
      if (outcome === 'open') watcher.start();
      yield* events;
      if (outcome === 'open') yield* watcher.events(signal);
    } finally {
      watcher.end();
      others.delete(watcher);
    }
  }

  /** Waits until all changes made so far are durable. */
  async #whenDurable(signal: AbortSignal): Promise<void> {
    const { store, durability } = this.#options;
    const { lastChange } = store;
    if (durability.committed >= lastChange) return;
    try {
      await durability.whenCommitted(lastChange, signal);
    } catch (error) {
      if (signal.aborted) throw error;
      throw unavailable(`cannot commit the changes: ${describeError(error)}`);
    }
  }

  #newWatcher({ entry, options, selection: { test } }: WatchRequest, from: number): Watcher {
    const { clock, random, maxPending } = this.#options;
    const seconds =
      options.timeoutSeconds > 0 ? options.timeoutSeconds : minTimeoutSeconds * (1 + random.next());
    return new Watcher({
      entry,
      matches: test,
      from,
      clock,
      timeoutMs: seconds * 1_000,
      bookmarks: options.bookmarks,
      deliveredUpTo: () => this.#deliveredUpTo(),
      maxPending: maxPending,
    });
  }

  #initialEvents(watch: WatchRequest): InitialEvents {
    const { store } = this.#options;
    const { initialEvents, resourceVersion } = watch.options;
    const requested = versionOf(resourceVersion) ?? 0;
    if (initialEvents === 'enabled') return this.#listThenWatch(watch);
    if (requested > 0) return this.#since(watch, requested);
    if (initialEvents === 'disabled') return { from: store.version, events: [], outcome: 'open' };
    return { ...this.#listThenWatch(watch), events: this.#currentObjects(watch) };
  }

  #listThenWatch(watch: WatchRequest): InitialEvents {
    const { version } = this.#options.store;
    const end = watch.options.bookmarks === 'enabled' ? [bookmark(watch.entry, version, 'initial-end')] : [];
    return { from: version, events: [...this.#currentObjects(watch), ...end], outcome: 'open' };
  }

  #currentObjects({ entry, request, selection: { test } }: WatchRequest): readonly ServedWatchEvent[] {
    return this.#options.store
      .from(storedResource(entry), request.namespace, '')
      .filter(test)
      .map((object): ServedWatchEvent => ({ type: 'ADDED', object: asResource(entry, object) }))
      .toArray();
  }

  #since({ entry, selection: { test } }: WatchRequest, version: number): InitialEvents {
    const { store } = this.#options;
    const stored = storedResource(entry);
    const changes = store.changesAfter(stored, version);
    if (changes === undefined) {
      const error = resourceVersionTooOld(version, store.compactedUpTo(stored));
      return { from: version, events: [{ type: 'ERROR', object: statusOf(error) }], outcome: 'ends' };
    }
    const lines = changes.flatMap((change) => new ChangeEvent(change).eventFor(entry, test) ?? []);
    return { from: Math.max(version, store.version), events: lines, outcome: 'open' };
  }

  #onChange(change: StoredChange): void {
    this.#uncommitted.push(change);
    if (this.#options.durability.committed >= change.version)
      this.#release(this.#options.durability.committed);
  }

  #release(version: number): void {
    const later = this.#uncommitted.findIndex((change) => change.version > version);
    const safe = this.#uncommitted.splice(0, later === -1 ? this.#uncommitted.length : later);
    for (const change of safe) this.#deliver(change);
  }

  #deliveredUpTo(): number {
    const [first] = this.#uncommitted;
    return first === undefined ? this.#options.store.version : first.version - 1;
  }

  #deliver(change: StoredChange): void {
    const watchers = this.#watchers.get(nameOf(change.resource));
    if (watchers === undefined || watchers.size === 0) return;
    const lines = new ChangeEvent(change);
    for (const watcher of watchers) watcher.deliver(lines);
  }

  #watchersOf(resource: ApiResource): Set<Watcher> {
    const name = nameOf(resource);
    const known = this.#watchers.get(name);
    if (known !== undefined) return known;
    const set = new Set<Watcher>();
    this.#watchers.set(name, set);
    return set;
  }
}

function nameOf({ group, plural }: ApiResource): string {
  return `${group}/${plural}`;
}
