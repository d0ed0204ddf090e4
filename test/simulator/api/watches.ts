import { type ApiObject, apiVersionOf, type WatchQuery } from '../../../src/api/index.ts';
import { KubelingError } from '../../../src/lib/index.ts';
import {
  type ApiRequest,
  badRequest,
  type Catalogue,
  ChangeEvent,
  describeRequest,
  frozen,
  type ObjectTest,
  type ResourceEntry,
  resourceVersionTooLarge,
  resourceVersionTooOld,
  StatusError,
  type StoredChange,
  selection,
  type VersionedStore,
} from '../../../src/local-api/api/index.ts';
import type { Work } from '../work.ts';
import type { PassingApiEvent, WatchFault } from './faults.ts';
import { refusedTo } from './refused.ts';
import { type FeedEvent, WatchFeed } from './watch-feed.ts';

export interface WatchesOptions {
  readonly store: VersionedStore;
  readonly catalogue: Catalogue;
  readonly work: Work;
  readonly nowMs: () => number;
  readonly latencyMs: () => number;
  readonly fault: (event: PassingApiEvent) => WatchFault | undefined;
  readonly bookmarkMs: number;
  /** Whether a watch may begin with the existing objects. */
  readonly streamingLists: () => 'offered' | 'refused';
  readonly maxWaiting: number;
}

interface Watcher {
  readonly request: ApiRequest;
  readonly entry: ResourceEntry;
  readonly wanted: ObjectTest;
  readonly feed: WatchFeed;
}

/** The annotation of the bookmark after the last of the existing objects. */
const initialEnd = { 'k8s.io/initial-events-end': 'true' };

/** All open watches of the simulated API server. */
export class Watches {
  readonly #options: WatchesOptions;
  readonly #watchers = new Map<string, Set<Watcher>>();

  constructor(options: WatchesOptions) {
    this.#options = options;
    options.store.subscribe((change) => this.#tell(change));
  }

  get size(): number {
    return this.#watchers.values().reduce((sum, { size }) => sum + size, 0);
  }

  open(request: ApiRequest, query: WatchQuery): WatchFeed {
    const entry = this.#options.catalogue.of(request.resource);
    const { test: wanted } = selection(request, entry);
    const opening = this.#opening(request, query, wanted);
    const ofResource = this.#ofResource(request.resource.plural);
    const feed: WatchFeed = this.#newFeed(request, () => ofResource.delete(watcher));
    const watcher: Watcher = { request, entry, wanted, feed };
    ofResource.add(watcher);
    feed.after(query.timeoutSeconds * 1_000, () => feed.end());
    this.#bookmarkLater(watcher);
    feed.begin(opening);
    return feed;
  }

  /** Breaks all watches whose request matches. */
  fail(error: (request: ApiRequest) => Error, which: (request: ApiRequest) => boolean): void {
    for (const { request, feed } of [...this.#watchers.values()].flatMap((set) => [...set])) {
      if (which(request)) feed.fail(error(request));
    }
  }

  /** Drops all further events of all watches, as a network that loses all packets. */
  silence(): void {
    for (const { feed } of [...this.#watchers.values()].flatMap((set) => [...set])) feed.silence();
  }

  #opening(request: ApiRequest, query: WatchQuery, wanted: ObjectTest): readonly FeedEvent[] {
    const { store, streamingLists } = this.#options;
    const { begin, resourceVersion = '' } = query;
    const isAnything = resourceVersion === '' || resourceVersion === '0';
    if (!isAnything && !/^\d+$/.test(resourceVersion))
      throw badRequest(`resourceVersion: Invalid value: "${resourceVersion}"`);
    if (begin === 'initial' && streamingLists() === 'refused')
      throw new StatusError({ code: 422, reason: 'Invalid', message: 'sendInitialEvents: Forbidden' });
    if (begin === 'initial') return this.#initial(request, wanted, Number(resourceVersion));
    if (isAnything) return this.#present(request, wanted);
    const changes = store.changesAfter(request.resource, Number(resourceVersion));
    if (changes === undefined)
      throw resourceVersionTooOld(Number(resourceVersion), store.compactedUpTo(request.resource));
    const entry = this.#options.catalogue.of(request.resource);
    return changes.flatMap((change) => eventOf(change, entry, wanted) ?? []);
  }

  #initial(request: ApiRequest, wanted: ObjectTest, atLeast: number): readonly FeedEvent[] {
    const { version } = this.#options.store;
    if (atLeast > version) throw resourceVersionTooLarge(String(atLeast), version);
    return [...this.#present(request, wanted), this.#bookmark(request, initialEnd)];
  }

  #present(request: ApiRequest, wanted: ObjectTest): readonly FeedEvent[] {
    const objects = this.#options.store.all(request.resource).filter(wanted);
    return objects.map((object) => ({ type: 'ADDED', object }));
  }

  #bookmark({ resource }: ApiRequest, annotations?: Readonly<Record<string, string>>): FeedEvent {
    const object: ApiObject = {
      kind: resource.kind,
      apiVersion: apiVersionOf(resource),
      metadata: { resourceVersion: String(this.#options.store.version), ...(annotations && { annotations }) },
    };
    return { type: 'BOOKMARK', object: frozen(object) };
  }

  #bookmarkLater({ request, feed }: Watcher): void {
    const tell = () => {
      feed.push(this.#bookmark(request));
      if (!feed.ended) feed.after(this.#options.bookmarkMs, tell);
    };
    feed.after(this.#options.bookmarkMs, tell);
  }

  #newFeed(request: ApiRequest, onEnd: () => void): WatchFeed {
    const { work, nowMs, latencyMs, fault, maxWaiting, store } = this.#options;
    const { resource, user } = request;
    return new WatchFeed({
      work,
      nowMs,
      latencyMs,
      maxWaiting,
      onEnd,
      fault: ({ type, object }) =>
        fault({ type, resource: resource.plural, name: object.metadata?.name, user: user.name }),
      failure: (how) => (how === 'gone' ? goneWatch(request, store.version) : brokenWatch(request)),
    });
  }

  #tell(change: StoredChange): void {
    for (const { feed, entry, wanted } of this.#ofResource(change.resource.plural)) {
      const event = eventOf(change, entry, wanted);
      if (event !== undefined) feed.push(event);
    }
  }

  /**
   * The watchers of a resource, by its plural name alone, because the plural names that a kubelet
   * uses are unique.
   */
  #ofResource(plural: string): Set<Watcher> {
    const known = this.#watchers.get(plural);
    if (known !== undefined) return known;
    const set = new Set<Watcher>();
    this.#watchers.set(plural, set);
    return set;
  }
}

export function brokenWatch(request: ApiRequest): KubelingError {
  return new KubelingError('API_UNAVAILABLE', `Cannot ${describeRequest(request)}: the connection broke`);
}

function goneWatch(request: ApiRequest, version: number): Error {
  return refusedTo(request, resourceVersionTooOld(version, version)) as Error;
}

function eventOf(change: StoredChange, entry: ResourceEntry, wanted: ObjectTest): FeedEvent | undefined {
  return new ChangeEvent(change).eventFor(entry, wanted) as FeedEvent | undefined;
}
