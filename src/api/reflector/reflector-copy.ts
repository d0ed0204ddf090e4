import {
  type Clock,
  cancelledError,
  type SubscriberFailed,
  type Timer,
  TypedEvents,
  Waiters,
} from '../../lib/index.ts';
import type { ApiObject } from '../client/client.ts';
import { type Named, type ObjectChange, ReflectorStore, type Snapshot } from './store.ts';

export interface ReflectedCopyOptions {
  readonly clock: Clock;
  /** For example "pods with spec.nodeName=n1". */
  readonly what: string;
  readonly onError: SubscriberFailed;
}

/** The delivery of simultaneous changes: the whole set, or the changes in order. */
export type ReflectedNews<T> =
  | { readonly kind: 'anew'; readonly objects: readonly T[] }
  | { readonly kind: 'changes'; readonly changes: readonly ObjectChange<T>[] };

interface CopyEvents<T> {
  change: ObjectChange<T>;
  set: readonly T[];
  news: ReflectedNews<T>;
}

/** The cache of a reflector, whether it is complete, and its listeners. */
export class ReflectedCopy<T extends ApiObject> implements Disposable {
  readonly #options: ReflectedCopyOptions;
  readonly #store = new ReflectorStore<T>();
  readonly #events: TypedEvents<CopyEvents<Named<T>>>;
  readonly #waiters = new Waiters<'whole' | 'closed'>();
  #state: 'partial' | 'whole' | 'closed' = 'partial';
  #telling: Timer | undefined;
  /** The pending notification. */
  #untold: ObjectChange<Named<T>>[] = [];

  constructor(options: ReflectedCopyOptions) {
    this.#options = options;
    this.#events = new TypedEvents(options.onError);
  }

  get isWhole(): boolean {
    return this.#state === 'whole';
  }

  get(key: string): Named<T> | undefined {
    return this.#store.get(key);
  }

  list(): readonly Named<T>[] {
    return this.#store.list();
  }

  onChange(listener: (change: ObjectChange<Named<T>>) => void): Disposable {
    return this.#events.on('change', listener);
  }

  onSet(listener: (objects: readonly Named<T>[]) => void): Disposable {
    return this.#events.on('set', listener);
  }

  /** Like `onSet`, but with the changes only. */
  onNews(listener: (news: ReflectedNews<Named<T>>) => void): Disposable {
    return this.#events.on('news', listener);
  }

  async whole(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#state === 'whole') return;
    const end = this.#state === 'closed' ? 'closed' : await this.#waiters.wait(signal);
    if (end === 'closed') throw cancelledError(`The reflector of ${this.#options.what} was disposed`);
  }

  /** Replaces all objects in one step. */
  replace(snapshot: Snapshot<T>): void {
    const changes = this.#store.replace(snapshot);
    const isFirst = this.#state === 'partial';
    this.#state = 'whole';
    for (const change of changes) this.#events.emit('change', change);
    if (isFirst || changes.length > 0) this.#tellSet('anew');
    this.#waiters.resolveAll('whole');
  }

  /** Returns whether anything changed. */
  put(object: Named<T>): boolean {
    return this.#told(this.#store.put(object));
  }

  /** See `ObjectStore.remove`. */
  remove(key: string, told: Parameters<ReflectorStore<T>['remove']>[1]): boolean {
    return this.#told(this.#store.remove(key, told));
  }

  /** Changes are missed until the next complete list: listeners are notified then. */
  isLeft(): void {
    this.#stopTelling();
    this.#state = 'partial';
  }

  /** Clears the cache and rejects all waiters. */
  [Symbol.dispose](): void {
    this.#stopTelling();
    this.#state = 'closed';
    this.#waiters.resolveAll('closed');
    this.#store.clear();
  }

  #told(changes: readonly ObjectChange<Named<T>>[]): boolean {
    for (const change of changes) this.#events.emit('change', change);
    if (changes.length === 0) return false;
    this.#untold.push(...changes);
    // Deferred, so that simultaneous changes are delivered together.
    this.#telling ??= this.#options.clock.timer(0, () => this.#tellSet('changes'));
    return true;
  }

  #tellSet(kind: ReflectedNews<T>['kind']): void {
    const changes = this.#untold;
    this.#stopTelling();
    if (this.#events.hasSubscribers('set')) this.#events.emit('set', this.#store.list());
    if (!this.#events.hasSubscribers('news')) return;
    const news = kind === 'changes' ? { kind, changes } : { kind, objects: this.#store.list() };
    this.#events.emit('news', news);
  }

  #stopTelling(): void {
    this.#telling?.cancel();
    this.#telling = undefined;
    this.#untold = [];
  }
}
