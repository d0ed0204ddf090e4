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

export interface ReflectorCacheOptions {
  readonly clock: Clock;
  /** A description of the cached objects for messages, for example "pods with spec.nodeName=n1". */
  readonly what: string;
  readonly onError: SubscriberFailed;
}

/** What listeners are notified of: the complete set of objects, or the changes in order. */
export type ReflectorUpdate<T> =
  | { readonly kind: 'complete'; readonly objects: readonly T[] }
  | { readonly kind: 'changes'; readonly changes: readonly ObjectChange<T>[] };

interface CopyEvents<T> {
  change: ObjectChange<T>;
  set: readonly T[];
  update: ReflectorUpdate<T>;
}

/** The cache of a reflector, whether it is complete, and its listeners. */
export class ReflectorCache<T extends ApiObject> implements Disposable {
  readonly #options: ReflectorCacheOptions;
  readonly #store = new ReflectorStore<T>();
  readonly #events: TypedEvents<CopyEvents<Named<T>>>;
  readonly #waiters = new Waiters<'complete' | 'closed'>();
  #state: 'partial' | 'complete' | 'closed' = 'partial';
  #notification: Timer | undefined;
  /** Changes that listeners have not received yet. */
  #undelivered: ObjectChange<Named<T>>[] = [];

  constructor(options: ReflectorCacheOptions) {
    this.#options = options;
    this.#events = new TypedEvents(options.onError);
  }

  get isComplete(): boolean {
    return this.#state === 'complete';
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

  /**
   * Calls the listener with all objects after a complete read, and with the changed objects after
   * later changes.
   */
  onUpdate(listener: (update: ReflectorUpdate<Named<T>>) => void): Disposable {
    return this.#events.on('update', listener);
  }

  async waitUntilComplete(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#state === 'complete') return;
    const end = this.#state === 'closed' ? 'closed' : await this.#waiters.wait(signal);
    if (end === 'closed') throw cancelledError(`The reflector of ${this.#options.what} was disposed`);
  }

  /** Replaces all objects in one step. */
  replace(snapshot: Snapshot<T>): void {
    const changes = this.#store.replace(snapshot);
    const isFirst = this.#state === 'partial';
    this.#state = 'complete';
    for (const change of changes) this.#events.emit('change', change);
    if (isFirst || changes.length > 0) this.#deliver('complete');
    this.#waiters.resolveAll('complete');
  }

  /** Adds or updates an object; returns whether the cache changed. */
  put(object: Named<T>): boolean {
    return this.#publish(this.#store.put(object));
  }

  /**
   * Removes an object under the conditions of `ReflectorStore.remove`; returns whether the cache
   * changed.
   */
  remove(key: string, deleted: Parameters<ReflectorStore<T>['remove']>[1]): boolean {
    return this.#publish(this.#store.remove(key, deleted));
  }

  /**
   * Marks the cache as incomplete: changes may be missed until the next complete list, after which
   * listeners receive the full set.
   */
  markIncomplete(): void {
    this.#cancelNotification();
    this.#state = 'partial';
  }

  /** Clears the cache and rejects all waiters. */
  [Symbol.dispose](): void {
    this.#cancelNotification();
    this.#state = 'closed';
    this.#waiters.resolveAll('closed');
    this.#store.clear();
  }

  #publish(changes: readonly ObjectChange<Named<T>>[]): boolean {
    for (const change of changes) this.#events.emit('change', change);
    if (changes.length === 0) return false;
    this.#undelivered.push(...changes);
    // The notification is deferred, so that listeners receive simultaneous changes in one call.
    this.#notification ??= this.#options.clock.timer(0, () => this.#deliver('changes'));
    return true;
  }

  #deliver(kind: ReflectorUpdate<T>['kind']): void {
    const changes = this.#undelivered;
    this.#cancelNotification();
    if (this.#events.hasSubscribers('set')) this.#events.emit('set', this.#store.list());
    if (!this.#events.hasSubscribers('update')) return;
    const update = kind === 'changes' ? { kind, changes } : { kind, objects: this.#store.list() };
    this.#events.emit('update', update);
  }

  #cancelNotification(): void {
    this.#notification?.cancel();
    this.#notification = undefined;
    this.#undelivered = [];
  }
}
