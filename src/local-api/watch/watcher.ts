import { apiVersionOf } from '../../api/index.ts';
import { type Clock, onAbort, type Timer } from '../../lib/index.ts';
import type { ObjectChange, ResourceEntry } from '../api/api-types.ts';
import type { WatchLine } from '../api/responses.ts';
import { frozen, roughSize, type StoredObject } from '../api/stored-object.ts';
import { shown } from '../registry/reads.ts';
import type { ObjectTest } from '../selectors/selection.ts';

export interface WatcherOptions {
  readonly entry: ResourceEntry;
  readonly wanted: ObjectTest;
  /** Changes up to this version are told already, or not of interest. */
  readonly from: number;
  readonly clock: Clock;
  readonly timeoutMs: number;
  readonly bookmarks: 'wanted' | 'unwanted';
  /** Up to which version everything was told by now. */
  readonly toldUpTo: () => number;
  /** So many lines may wait for a reader that is slow. */
  readonly maxWaiting: number;
}

const bookmarkMs = 60_000;
/** About so much memory may all that waits for one reader take; most of it is remembered for others as well. */
const maxWaitingBytes = 24 * 2 ** 20;
/** So that whoever comes again need not hear much twice. */
const lastBookmarkMs = 2_000;

/**
 * Somebody who watches, with what it has not read yet. Who falls too far behind is sent away with what it has: it may
 * come again where it stopped, and misses nothing.
 */
export class Watcher {
  readonly #options: WatcherOptions;
  readonly #waiting: { readonly line: WatchLine; readonly bytes: number }[] = [];
  readonly #timers = new Set<Timer>();
  #wake: (() => void) | undefined;
  #waitingBytes = 0;
  #state: 'open' | 'ended' = 'open';

  constructor(options: WatcherOptions) {
    this.#options = options;
  }

  get ended(): boolean {
    return this.#state === 'ended';
  }

  /** Begins to count time. */
  begin(): void {
    const { timeoutMs, bookmarks } = this.#options;
    this.#after(timeoutMs, () => this.end());
    if (bookmarks === 'unwanted') return;
    if (timeoutMs > lastBookmarkMs) this.#after(timeoutMs - lastBookmarkMs, () => this.#bookmark());
    const regularly = () => {
      this.#bookmark();
      if (!this.ended) this.#after(bookmarkMs, regularly);
    };
    this.#after(bookmarkMs, regularly);
  }

  tell(change: ChangeLines): void {
    const { entry, wanted, from, maxWaiting } = this.#options;
    if (this.ended || change.version <= from) return;
    const line = change.for(entry, wanted);
    if (line === undefined) return;
    // One line may always wait, however large.
    const isFull =
      this.#waiting.length >= maxWaiting ||
      (this.#waiting.length > 0 && this.#waitingBytes + change.bytes > maxWaitingBytes);
    if (isFull) this.end();
    else this.#push(line, change.bytes);
  }

  /** What it had not read yet stays to be read. */
  end(): void {
    this.#state = 'ended';
    for (const timer of this.#timers) timer.cancel();
    this.#timers.clear();
    this.#wake?.();
  }

  /** Ends with the watch, or when the signal is aborted. */
  async *lines(signal: AbortSignal): AsyncGenerator<WatchLine, void, undefined> {
    using _link = onAbort(signal, () => this.end());
    while (!signal.aborted) {
      const next = this.#waiting.shift();
      this.#waitingBytes -= next?.bytes ?? 0;
      if (next !== undefined) yield next.line;
      else if (this.ended) return;
      else await this.#arrival();
    }
  }

  /** Who has enough to read needs no bookmark. */
  #bookmark(): void {
    const { entry, toldUpTo, from } = this.#options;
    if (this.#waiting.length > 0) return;
    this.#push(bookmark(entry, Math.max(from, toldUpTo()), 'now-and-then'));
  }

  #push(line: WatchLine, bytes = 0): void {
    this.#waiting.push({ line, bytes });
    this.#waitingBytes += bytes;
    this.#wake?.();
  }

  #arrival(): Promise<void> {
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

/** One change in the eyes of those who watch; what several of them see is made once. */
export class ChangeLines {
  readonly #change: ObjectChange;
  #leaving: StoredObject | undefined;
  #bytes: number | undefined;

  constructor(change: ObjectChange) {
    this.#change = change;
  }

  get version(): number {
    return this.#change.version;
  }

  /** About what it takes in memory to keep it for somebody who is slow. */
  get bytes(): number {
    this.#bytes ??= roughSize(this.#change.object);
    return this.#bytes;
  }

  /** To a watcher that selects, an object it stops to select is gone, and one it begins to select is new. */
  for(entry: ResourceEntry, wanted: ObjectTest): WatchLine | undefined {
    const { type, object, before } = this.#change;
    const was = before !== undefined && wanted(before);
    const is = type !== 'DELETED' && wanted(object);
    if (is) return { type: was ? 'MODIFIED' : 'ADDED', object: shown(entry, object) };
    if (!was) return undefined;
    const last = type === 'DELETED' ? object : this.#lastSeen(before);
    return { type: 'DELETED', object: shown(entry, last) };
  }

  /** As it was while it was selected, with the version of the change that ended that. */
  #lastSeen(before: StoredObject): StoredObject {
    this.#leaving ??= frozen({
      ...before,
      metadata: { ...before.metadata, resourceVersion: String(this.#change.version) },
    });
    return this.#leaving;
  }
}

/** Marks the bookmark after the last of the objects that were there. */
const initialEnd = { 'k8s.io/initial-events-end': 'true' };

export function bookmark(
  { resource }: ResourceEntry,
  version: number,
  at: 'initial-end' | 'now-and-then',
): WatchLine {
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
