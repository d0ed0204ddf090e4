import { apiResources } from '../../../src/api/index.ts';
import type { Clock } from '../../../src/lib/index.ts';
import type { StoreChange, VersionedStore } from '../../../src/local-api/api/index.ts';

interface Expiry {
  readonly namespace: string | undefined;
  readonly name: string;
  readonly version: string;
  readonly dueMs: number;
}

/** Deletes events an hour after their last write, as API servers do; checked at every new event. */
export class EventExpiry {
  readonly #store: VersionedStore;
  readonly #clock: Clock;
  readonly #ttlMs: number;
  #line: Expiry[] = [];

  constructor(store: VersionedStore, clock: Clock, ttlMs: number) {
    this.#store = store;
    this.#clock = clock;
    this.#ttlMs = ttlMs;
    store.subscribe((change) => this.#written(change));
  }

  #written({ resource, type, object: { metadata } }: StoreChange): void {
    if (resource.plural !== 'events' || type === 'DELETED') return;
    const { namespace, name, resourceVersion: version } = metadata;
    this.#line.push({ namespace, name, version, dueMs: this.#clock.monotonicMs() + this.#ttlMs });
    this.#removeExpired();
  }

  #removeExpired(): void {
    const now = this.#clock.monotonicMs();
    const first = this.#line.findIndex(({ dueMs }) => dueMs > now);
    if (first <= 0) return;
    for (const { namespace, name, version } of this.#line.splice(0, first)) {
      const event = this.#store.get(apiResources.events, namespace, name);
      if (event?.metadata.resourceVersion === version)
        this.#store.remove(apiResources.events, namespace, name, 'expiry');
    }
  }
}
