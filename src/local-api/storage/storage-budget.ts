import { getHeapStatistics } from 'node:v8';
import { type ApiResource, apiResources } from '../../api/index.ts';
import { type ApiUser, nodeNameOfUser, type StatusError } from '../api/api-types.ts';
import { storageFull } from '../api/status-errors.ts';
import type { StoredObject } from '../api/stored-object.ts';
import type { VersionedStore } from './versioned-store.ts';

/** Limits of the memory that stored objects use, in bytes. */
export interface StorageLimits {
  readonly total: number;
  /**
   * The limit for the objects of one namespace, so that one namespace cannot fill the storage for
   * all.
   */
  readonly namespace: number;
}

/**
 * The share of the JavaScript heap for stored objects. The rest is needed: the kubelet in the same
 * process holds its own copies of pods, secrets and config maps, watches hold the history of
 * objects, and text beyond Latin-1 takes twice its length.
 */
const heapShare = 1 / 4;
const namespaceShare = 1 / 2;
/** The reserve beyond the limits for the writes of the node and of the API server itself. */
const reserveShare = 1 / 4;
/**
 * The number of events that are deleted together when the storage is full, so that events are not
 * sorted again for each write.
 */
const evictedEvents = 500;

export function heapStorageLimits(heapBytes: number = getHeapStatistics().heap_size_limit): StorageLimits {
  const total = Math.floor(heapBytes * heapShare);
  return { total, namespace: Math.floor(total * namespaceShare) };
}

export interface StorageWrite {
  readonly user: ApiUser;
  readonly resource: ApiResource;
  readonly before: StoredObject | undefined;
  readonly after: StoredObject;
}

/**
 * Bounds the memory of stored objects, because the kubelet runs in the same process. Reads,
 * deletions and writes that shrink an object are never rejected, so that a full storage can be
 * freed, even one that was full when the process started.
 */
export class StorageBudget {
  readonly #store: VersionedStore;
  readonly #limits: StorageLimits;

  constructor(store: VersionedStore, limits: StorageLimits) {
    this.#store = store;
    this.#limits = limits;
  }

  /** Deletes the oldest events for a write that does not fit, and throws a StatusError (507) if that does not suffice. */
  admit(write: StorageWrite): void {
    const { usage } = this.#store;
    const { before, after, resource, user } = write;
    const growth = usage.sizeOf(after) - (before === undefined ? 0 : usage.sizeOf(before));
    if (growth <= 0 || isOwnNodeObject(user, resource)) return;
    if (this.#violation(write, growth) === undefined) return;
    const isTotal = usage.total + growth > this.#limit(user, 'total');
    this.#evictEvents(isTotal ? undefined : after.metadata.namespace, before);
    const problem = this.#violation(write, growth);
    if (problem !== undefined) throw problem;
  }

  #violation({ user, after }: StorageWrite, growth: number): StatusError | undefined {
    const { usage } = this.#store;
    const { namespace } = after.metadata;
    const total = this.#limit(user, 'total');
    if (usage.total + growth > total)
      return storageFull(`all objects together may take ${mebibytes(total)} of memory`);
    const share = this.#limit(user, 'namespace');
    if (usage.ofNamespace(namespace) + growth <= share) return undefined;
    const whose =
      namespace === undefined ? 'objects of the cluster' : `objects of the namespace "${namespace}"`;
    return storageFull(`the ${whose} may take ${mebibytes(share)} of memory`);
  }

  #limit(user: ApiUser, limit: keyof StorageLimits): number {
    const bytes = this.#limits[limit];
    const isSystem = nodeNameOfUser(user) !== undefined || user.name === 'system:apiserver';
    return isSystem ? Math.floor(bytes * (1 + reserveShare)) : bytes;
  }

  #evictEvents(namespace: string | undefined, updated: StoredObject | undefined): void {
    const versionOf = ({ metadata }: StoredObject) => Number(metadata.resourceVersion);
    const oldest = this.#store
      .all(apiResources.events, namespace)
      .toSorted((one, other) => versionOf(one) - versionOf(other));
    for (const event of oldest.slice(0, evictedEvents)) {
      if (event === updated) continue;
      const { metadata } = event;
      this.#store.remove(apiResources.events, metadata.namespace, metadata.name, 'system:apiserver');
    }
  }
}

/**
 * Whether the object is the Node, CSINode or lease of the node that sends the request. There are
 * few of these objects, and the node is lost without them.
 */
function isOwnNodeObject(user: ApiUser, { plural }: ApiResource): boolean {
  return nodeNameOfUser(user) !== undefined && ['nodes', 'csinodes', 'leases'].includes(plural);
}

function mebibytes(bytes: number): string {
  return `${Math.round((bytes / 2 ** 20) * 10) / 10} MiB`;
}
