import type { ApiResource } from '../../api/index.ts';
import { type Clock, describeError, type Random } from '../../lib/index.ts';
import type { ApiRequest, ObjectChange, ResourceEntry } from '../api/api-types.ts';
import { statusOf, type WatchLine } from '../api/responses.ts';
import { tooLargeVersion, tooOldVersion, unavailable } from '../api/status-errors.ts';
import { type ListOptions, versionOf } from '../registry/list-options.ts';
import { keptAs, shown } from '../registry/reads.ts';
import { type Selection, selection } from '../selectors/selection.ts';
import type { Durability } from '../storage/durability.ts';
import type { ObjectStore } from '../storage/object-store.ts';
import { bookmark, ChangeLines, Watcher } from './watcher.ts';

export interface WatchersOptions {
  readonly store: ObjectStore;
  readonly durability: Durability;
  readonly clock: Clock;
  readonly random: Random;
  /** So many lines may wait for one reader. */
  readonly maxWaiting: number;
}

interface Wish {
  readonly request: ApiRequest;
  readonly entry: ResourceEntry;
  readonly options: ListOptions;
  readonly selection: Selection;
}

interface Opening {
  /** Everything up to this version is in the lines, or not of interest. */
  readonly from: number;
  readonly lines: Iterable<WatchLine>;
  readonly outcome: 'goes-on' | 'ends';
}

const shortestSeconds = 1_800;

/** Everyone who watches. What happens is told when it is safe, and not before. */
export class Watchers implements Disposable {
  readonly #options: WatchersOptions;
  readonly #watchers = new Map<string, Set<Watcher>>();
  readonly #links: readonly Disposable[];
  /** In the order in which they happened; gone from here when they are safe. */
  readonly #unsafe: ObjectChange[] = [];

  constructor(options: WatchersOptions) {
    this.#options = options;
    const { store, durability } = options;
    this.#links = [
      store.subscribe((change) => this.#happened(change)),
      durability.onCommitted((version) => this.#release(version)),
    ];
  }

  get size(): number {
    return this.#watchers.values().reduce((sum, { size }) => sum + size, 0);
  }

  /** Throws a StatusError at once for what makes no sense; the watch itself begins when it is first read. */
  open(
    request: ApiRequest,
    entry: ResourceEntry,
    options: ListOptions,
    signal: AbortSignal,
  ): AsyncIterable<WatchLine> {
    const { store } = this.#options;
    const asked = versionOf(options.resourceVersion);
    if (options.initialEvents === 'wanted' && asked !== undefined && asked > store.version)
      throw tooLargeVersion(options.resourceVersion, store.version);
    const wish: Wish = { request, entry, options, selection: selection(request, entry) };
    return { [Symbol.asyncIterator]: () => this.#run(wish, signal) };
  }

  /** Ends all watches. */
  [Symbol.dispose](): void {
    for (const link of this.#links) link[Symbol.dispose]();
    for (const watcher of [...this.#watchers.values()].flatMap((set) => [...set])) watcher.end();
  }

  async *#run(wish: Wish, signal: AbortSignal): AsyncGenerator<WatchLine, void, undefined> {
    const { from, lines, outcome } = this.#opening(wish);
    const watcher = this.#newWatcher(wish, from);
    const others = this.#of(keptAs(wish.entry));
    if (outcome === 'goes-on') others.add(watcher);
    try {
      await this.#safe(signal);
      if (outcome === 'goes-on') watcher.begin();
      yield* lines;
      if (outcome === 'goes-on') yield* watcher.lines(signal);
    } finally {
      watcher.end();
      others.delete(watcher);
    }
  }

  /** All that has happened by now is told only when it is safe. */
  async #safe(signal: AbortSignal): Promise<void> {
    const { store, durability } = this.#options;
    const { lastChange } = store;
    if (durability.committed >= lastChange) return;
    try {
      await durability.whenCommitted(lastChange, signal);
    } catch (error) {
      if (signal.aborted) throw error;
      throw unavailable(`what has happened could not be made safe: ${describeError(error)}`);
    }
  }

  #newWatcher({ entry, options, selection: { test } }: Wish, from: number): Watcher {
    const { clock, random, maxWaiting } = this.#options;
    const seconds =
      options.timeoutSeconds > 0 ? options.timeoutSeconds : shortestSeconds * (1 + random.next());
    return new Watcher({
      entry,
      wanted: test,
      from,
      clock,
      timeoutMs: seconds * 1_000,
      bookmarks: options.bookmarks,
      toldUpTo: () => this.#toldUpTo(),
      maxWaiting,
    });
  }

  #opening(wish: Wish): Opening {
    const { store } = this.#options;
    const { initialEvents, resourceVersion } = wish.options;
    const asked = versionOf(resourceVersion) ?? 0;
    if (initialEvents === 'wanted') return this.#everything(wish);
    if (asked > 0) return this.#since(wish, asked);
    if (initialEvents === 'unwanted') return { from: store.version, lines: [], outcome: 'goes-on' };
    return { ...this.#everything(wish), lines: this.#present(wish) };
  }

  #everything(wish: Wish): Opening {
    const { version } = this.#options.store;
    const end = wish.options.bookmarks === 'wanted' ? [bookmark(wish.entry, version, 'initial-end')] : [];
    return { from: version, lines: [...this.#present(wish), ...end], outcome: 'goes-on' };
  }

  #present({ entry, request, selection: { test } }: Wish): readonly WatchLine[] {
    return this.#options.store
      .from(keptAs(entry), request.namespace, '')
      .filter(test)
      .map((object): WatchLine => ({ type: 'ADDED', object: shown(entry, object) }))
      .toArray();
  }

  #since({ entry, selection: { test } }: Wish, version: number): Opening {
    const { store } = this.#options;
    const kept = keptAs(entry);
    const changes = store.changesAfter(kept, version);
    if (changes === undefined) {
      const error = tooOldVersion(version, store.forgottenUpTo(kept));
      return { from: version, lines: [{ type: 'ERROR', object: statusOf(error) }], outcome: 'ends' };
    }
    const lines = changes.flatMap((change) => new ChangeLines(change).for(entry, test) ?? []);
    return { from: Math.max(version, store.version), lines, outcome: 'goes-on' };
  }

  #happened(change: ObjectChange): void {
    this.#unsafe.push(change);
    if (this.#options.durability.committed >= change.version)
      this.#release(this.#options.durability.committed);
  }

  #release(version: number): void {
    const later = this.#unsafe.findIndex((change) => change.version > version);
    const safe = this.#unsafe.splice(0, later === -1 ? this.#unsafe.length : later);
    for (const change of safe) this.#tell(change);
  }

  #toldUpTo(): number {
    const [first] = this.#unsafe;
    return first === undefined ? this.#options.store.version : first.version - 1;
  }

  #tell(change: ObjectChange): void {
    const watchers = this.#watchers.get(nameOf(change.resource));
    if (watchers === undefined || watchers.size === 0) return;
    const lines = new ChangeLines(change);
    for (const watcher of watchers) watcher.tell(lines);
  }

  #of(resource: ApiResource): Set<Watcher> {
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
