import { apiVersionOf } from '../../api/index.ts';
import { type Clock, onAbort, type Timer } from '../../lib/index.ts';
import type { ResourceEntry, StoredChange } from '../api/api-types.ts';
import type { ServedWatchEvent } from '../api/responses.ts';
import { estimateSize, frozen, type StoredObject } from '../api/stored-object.ts';
import { asResource } from '../registry/reads.ts';
import type { ObjectTest } from '../selectors/selection.ts';

export interface WatcherOptions {
  readonly entry: ResourceEntry;
  readonly matches: ObjectTest;
  /** The watch starts after this version: earlier changes are already delivered or not needed. */
  readonly from: number;
  readonly clock: Clock;
  readonly timeoutMs: number;
  readonly bookmarks: 'enabled' | 'disabled';
  /** The version up to which all changes have been delivered to watchers. */
  readonly deliveredUpTo: () => number;
  /** The maximum number of pending events. */
  readonly maxPending: number;
}

const bookmarkMs = 60_000;
/** The approximate memory limit of pending events; most of the objects are shared. */
const maxPendingBytes = 24 * 2 ** 20;
/**
 * The last bookmark is sent this long before the timeout, so that the client can resume from a
 * recent version.
 */
const lastBookmarkMs = 2_000;

/**
 * A watcher with its pending events. A watcher that falls too far behind is ended after its pending
 * events: it can resume without a gap.
 */
export class Watcher {
  readonly #options: WatcherOptions;
  readonly #pending: { readonly line: ServedWatchEvent; readonly bytes: number }[] = [];
  readonly #timers = new Set<Timer>();
  #wake: (() => void) | undefined;
  #pendingBytes = 0;
  #state: 'open' | 'ended' = 'open';

  constructor(options: WatcherOptions) {
    this.#options = options;
  }

  get ended(): boolean {
    return this.#state === 'ended';
  }

  /** Starts the timers of the timeout and the bookmarks. */
  start(): void {
    const { timeoutMs, bookmarks } = this.#options;
    this.#after(timeoutMs, () => this.end());
    if (bookmarks === 'disabled') return;
    if (timeoutMs > lastBookmarkMs) this.#after(timeoutMs - lastBookmarkMs, () => this.#sendBookmark());
    const regularly = () => {
      this.#sendBookmark();
      if (!this.ended) this.#after(bookmarkMs, regularly);
    };
    this.#after(bookmarkMs, regularly);
  }

  deliver(change: ChangeEvent): void {
    const { entry, matches, from, maxPending } = this.#options;
    if (this.ended || change.version <= from) return;
    const line = change.eventFor(entry, matches);
    if (line === undefined) return;
    // One event may always be pending, even if it exceeds the limit.
    const isFull =
      this.#pending.length >= maxPending ||
      (this.#pending.length > 0 && this.#pendingBytes + change.bytes > maxPendingBytes);
    if (isFull) this.end();
    else this.#push(line, change.bytes);
  }

  /** Ends the watch; events that are pending can still be read. */
  end(): void {
    this.#state = 'ended';
    for (const timer of this.#timers) timer.cancel();
    this.#timers.clear();
    this.#wake?.();
  }

  /** The watch events; ends with the watch, or when the signal is aborted. */
  async *events(signal: AbortSignal): AsyncGenerator<ServedWatchEvent, void, undefined> {
    using _link = onAbort(signal, () => this.end());
    while (!signal.aborted) {
      const next = this.#pending.shift();
      this.#pendingBytes -= next?.bytes ?? 0;
      if (next !== undefined) yield next.line;
      else if (this.ended) return;
      else await this.#nextEvent();
    }
  }

  /** Sends a bookmark unless events are pending. */
  #sendBookmark(): void {
    const { entry, deliveredUpTo, from } = this.#options;
    if (this.#pending.length > 0) return;
    this.#push(bookmark(entry, Math.max(from, deliveredUpTo()), 'periodic'));
  }

  #push(line: ServedWatchEvent, bytes = 0): void {
    this.#pending.push({ line, bytes });
    this.#pendingBytes += bytes;
    this.#wake?.();
  }

  #nextEvent(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  #after(ms: number, run: () => void): void {
    const timer = this.#options.clock.timer(ms, () => {
      this.#timers.delete(timer);
      run();
    });
    this.#timers.add(timer);
  }
}

/** Converts a change to a watch event; the result is shared by all watchers. */
export class ChangeEvent {
  readonly #change: StoredChange;
  #lastMatching: StoredObject | undefined;
  #bytes: number | undefined;

  constructor(change: StoredChange) {
    this.#change = change;
  }

  get version(): number {
    return this.#change.version;
  }

  /** The approximate memory size of the pending event. */
  get bytes(): number {
    this.#bytes ??= estimateSize(this.#change.object);
    return this.#bytes;
  }

  /**
   * For a watcher with a selector, an object that starts to match is ADDED, and one that no longer
   * matches is DELETED.
   */
  eventFor(entry: ResourceEntry, matches: ObjectTest): ServedWatchEvent | undefined {
    const { type, object, before } = this.#change;
    const was = before !== undefined && matches(before);
    const is = type !== 'DELETED' && matches(object);
    if (is) return { type: was ? 'MODIFIED' : 'ADDED', object: asResource(entry, object) };
    if (!was) return undefined;
    const last = type === 'DELETED' ? object : this.#lastMatchingObject(before);
    return { type: 'DELETED', object: asResource(entry, last) };
  }

  /**
   * The last version of the object that matched the selector, with the resource version of the
   * change.
   */
  #lastMatchingObject(before: StoredObject): StoredObject {
    this.#lastMatching ??= frozen({
      ...before,
      metadata: { ...before.metadata, resourceVersion: String(this.#change.version) },
    });
    return this.#lastMatching;
  }
}

/** The bookmark that marks the end of the initial events. */
const initialEnd = { 'k8s.io/initial-events-end': 'true' };

export function bookmark(
  { resource }: ResourceEntry,
  version: number,
  at: 'initial-end' | 'periodic',
): ServedWatchEvent {
  const annotations = at === 'initial-end' ? { annotations: initialEnd } : {};
  return {
    type: 'BOOKMARK',
    object: frozen({
      kind: resource.kind,
      apiVersion: apiVersionOf(resource),
      metadata: { resourceVersion: String(version), ...annotations },
    }),
  };
}
