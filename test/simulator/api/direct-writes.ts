import { type JsonObject, sameValue } from '../../../src/api/index.ts';
import { apiTime } from '../../../src/lib/index.ts';
import type { ResourceEntry } from '../../../src/local-api/api/api-types.ts';
import {
  type ApiRequest,
  conflict,
  notFound,
  type StoredObject,
  type WritesDeps,
} from '../../../src/local-api/api/index.ts';
import { toWireObject } from '../../../src/local-api/api/stored-object.ts';
import { isRemovable } from '../../../src/local-api/registry/deletion.ts';
import {
  chooseName,
  metadataOf,
  newStoredObject,
  newUid,
} from '../../../src/local-api/registry/object-meta.ts';
import { updatedObject } from '../../../src/local-api/registry/object-update.ts';
import { storedResource } from '../../../src/local-api/registry/reads.ts';

/**
 * Writes that no API client may request: tests store objects with a status, or bind pods, without
 * admission.
 */
export class DirectWrites {
  readonly #deps: Omit<WritesDeps, 'namespaces'>;

  constructor(deps: Omit<WritesDeps, 'namespaces'>) {
    this.#deps = deps;
  }

  /** Binds a pod to a node as the scheduler does. */
  bind(request: ApiRequest, node: string): StoredObject {
    const entry = this.#entry(request);
    const before = this.#find(request, entry);
    if (before === undefined) throw notFound(request);
    const { metadata, spec, status } = before;
    if (metadata.deletionTimestamp !== undefined) throw conflict(request, 'the pod is being deleted');
    if (spec?.['nodeName'] !== undefined)
      throw conflict(request, `pod ${metadata.name} is already assigned to node "${spec['nodeName']}"`);
    const scheduled = {
      type: 'PodScheduled',
      status: 'True',
      lastTransitionTime: apiTime(this.#deps.clock.now()),
    };
    const others = ((status?.['conditions'] ?? []) as readonly JsonObject[]).filter(
      ({ type }) => type !== 'PodScheduled',
    );
    const bound = { ...status, conditions: [...others, scheduled] };
    return this.#storeOrRemove(request, entry, before, {
      ...before,
      spec: { ...spec, nodeName: node },
      status: bound,
    });
  }

  /** Stores an object including its status, and replaces an existing object. */
  put(request: ApiRequest, body: unknown): StoredObject {
    const entry = this.#entry(request);
    const desired = toWireObject(body);
    const before = this.#find({ ...request, name: String(metadataOf(desired)['name'] ?? '') }, entry);
    return before === undefined
      ? this.#create(request, entry, desired)
      : this.#replace(request, entry, before, desired);
  }

  /** Replaces an object; keeps its status when the new object has none. */
  #replace(
    request: ApiRequest,
    entry: ResourceEntry,
    before: StoredObject,
    desired: JsonObject,
  ): StoredObject {
    const status = before.status === undefined ? {} : { status: before.status };
    const rules = { ...entry.strategy, status: 'inline' } as const;
    return this.#storeOrRemove(
      request,
      entry,
      before,
      updatedObject(rules, before, { ...status, ...desired }, undefined),
    );
  }

  #create(request: ApiRequest, entry: ResourceEntry, desired: JsonObject): StoredObject {
    const { store, clock, random } = this.#deps;
    const { resourceVersion: _, ...meta } = metadataOf(desired);
    const name = chooseName(
      request,
      meta,
      random,
      (free) => this.#find({ ...request, name: free }, entry) !== undefined,
    );
    const object = newStoredObject(
      { ...request, resource: storedResource(entry) },
      { ...desired, metadata: meta },
      {
        name,
        uid: newUid(random),
        creationTimestamp: apiTime(clock.now()),
        generation: entry.strategy.generation === 'counted' ? 1 : undefined,
      },
    );
    const { user, subresource, resource, warn = () => {} } = request;
    const context = { user, subresource, resource, objects: store, clock, random, warn };
    const prepared =
      entry.strategy.prepare?.(object, { ...context, verb: 'create', before: undefined }) ?? object;
    const serverFields = Object.fromEntries(
      ['uid', 'creationTimestamp', 'generation', 'deletionTimestamp', 'deletionGracePeriodSeconds'].flatMap(
        (field) => (meta[field] === undefined ? [] : [[field, meta[field]]]),
      ),
    );
    const status =
      desired['status'] === undefined
        ? {}
        : { status: { ...prepared.status, ...(desired['status'] as JsonObject) } };
    return store.put(
      storedResource(entry),
      { ...prepared, ...status, metadata: { ...prepared.metadata, ...serverFields } },
      user.name,
    );
  }

  #storeOrRemove(
    { user }: ApiRequest,
    entry: ResourceEntry,
    before: StoredObject,
    after: StoredObject,
  ): StoredObject {
    if (sameValue(before, after)) return before;
    const { store } = this.#deps;
    const resource = storedResource(entry);
    if (!isRemovable(after, entry.strategy.blocksDeletion ?? (() => false)))
      return store.put(resource, after, user.name);
    store.remove(resource, before.metadata.namespace, before.metadata.name, user.name);
    return after;
  }

  #entry({ resource }: ApiRequest): ResourceEntry {
    return this.#deps.catalogue.of(resource);
  }

  #find({ namespace, name = '' }: ApiRequest, entry: ResourceEntry): StoredObject | undefined {
    return this.#deps.store.get(storedResource(entry), namespace, name);
  }
}
