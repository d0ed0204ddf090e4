import { isApiCode, isOlderVersion } from '../api/index.ts';
import { type Clock, type Logger, SingleFlight } from '../lib/index.ts';
import type { PodUid } from '../pods/index.ts';
import {
  notRegistered,
  type ObjectName,
  objectNameKey,
  type ReferredObject,
  type ReferredStore,
} from './referred-store.ts';

/**
 * Reads an object: `newest` requests the latest version, `any` accepts any version that the API
 * server has cached. Throws API_NOT_FOUND if the object does not exist.
 */
export type FetchObject<T> = (
  object: ObjectName,
  freshness: 'newest' | 'any',
  signal: AbortSignal,
) => Promise<T>;

export interface CacheStoreDeps<T> {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly fetch: FetchObject<T>;
  /**
   * How long an object is served from the cache; evaluated at each read, because the cluster may
   * change it.
   */
  readonly ttlMs: () => number;
}

/**
 * The last response of the API server. A missing object is never fresh, so that a pod that waits
 * for it gets it soon after its creation.
 */
type Fetched<T> =
  | { readonly found: 'object'; readonly object: T; readonly atMs: number }
  | { readonly found: 'nothing' };

/**
 * The cache entry is replaced when another pod begins to refer to the object, so that responses
 * still in flight are ignored.
 */
interface Cell<T> {
  fetched: Fetched<T> | undefined;
}

interface Entry<T> {
  readonly pods: Set<PodUid>;
  cell: Cell<T>;
}

/** Reads objects on demand and caches them for a TTL. */
export class CacheStore<T extends ReferredObject> implements ReferredStore<T> {
  readonly #deps: CacheStoreDeps<T>;
  readonly #entries = new Map<string, Entry<T>>();
  readonly #flights = new SingleFlight<Cell<T>, Fetched<T>>();

  constructor(deps: CacheStoreDeps<T>) {
    this.#deps = deps;
  }

  add(object: ObjectName, pod: PodUid): void {
    const entry = this.#entries.get(objectNameKey(object));
    if (entry?.pods.has(pod) === true) return;
    const pods = entry?.pods ?? new Set();
    pods.add(pod);
    // The cache entry is dropped when another pod begins to refer to the object, because the client
    // that created the pod may have changed the object just before.
    this.#entries.set(objectNameKey(object), { pods, cell: { fetched: undefined } });
  }

  remove(object: ObjectName, pod: PodUid): void {
    const pods = this.#entries.get(objectNameKey(object))?.pods;
    if (pods?.delete(pod) === true && pods.size === 0) this.#entries.delete(objectNameKey(object));
  }

  async get(object: ObjectName, signal: AbortSignal): Promise<T | undefined> {
    const cell = this.#entries.get(objectNameKey(object))?.cell;
    if (cell === undefined) throw notRegistered(object);
    const fetched = this.#isFresh(cell)
      ? cell.fetched
      : await this.#flights.run(cell, (inner) => this.#refresh(object, cell, inner), signal);
    return fetched?.found === 'object' ? fetched.object : undefined;
  }

  #isFresh({ fetched }: Cell<T>): boolean {
    return fetched?.found === 'object' && this.#deps.clock.monotonicMs() < fetched.atMs + this.#deps.ttlMs();
  }

  async #refresh(object: ObjectName, cell: Cell<T>, signal: AbortSignal): Promise<Fetched<T>> {
    const before = cell.fetched;
    try {
      const fetched = await this.#fetch(object, before, signal);
      const isBehind = before?.found === 'object' && fetched.found === 'object' && isBefore(fetched, before);
      if (isBehind) return before;
      cell.fetched = fetched;
      return fetched;
    } catch (error) {
      if (before === undefined || signal.aborted) throw error;
      this.#deps.logger.error('Failed to refresh object, serving the cached version', error, {
        object: objectNameKey(object),
      });
      return before;
    }
  }

  async #fetch(object: ObjectName, before: Fetched<T> | undefined, signal: AbortSignal): Promise<Fetched<T>> {
    try {
      const freshness = before?.found === 'object' ? 'any' : 'newest';
      const found = await this.#deps.fetch(object, freshness, signal);
      return { found: 'object', object: found, atMs: this.#deps.clock.monotonicMs() };
    } catch (error) {
      if (isApiCode(error, 'API_NOT_FOUND')) return { found: 'nothing' };
      throw error;
    }
  }
}

interface FoundObject {
  readonly object: ReferredObject;
}

function isBefore(one: FoundObject, other: FoundObject): boolean {
  return isOlderVersion(versionOf(one), versionOf(other));
}

function versionOf({ object }: FoundObject): string {
  return object.metadata?.resourceVersion ?? '';
}

const annotation = 'node.alpha.kubernetes.io/ttl';
const defaultTtlMs = 60_000;

/** The TTL of cached objects. The cluster sets it, in seconds, on large clusters. */
export function objectTtlMs(nodeAnnotations: Readonly<Record<string, string>> = {}): number {
  const value = nodeAnnotations[annotation];
  return value !== undefined && /^[+-]?[0-9]+$/.test(value) ? Number(value) * 1_000 : defaultTtlMs;
}
