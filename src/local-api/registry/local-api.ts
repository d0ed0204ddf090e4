import { apiVersionOf, type JsonObject, type Patch } from '../../api/index.ts';
import { type Clock, describeError, KubelingError, type Logger, type Random } from '../../lib/index.ts';
import type { ApiRequest } from '../api/api-types.ts';
import { type ApiCall, type RequestAction, type ServerContext, StatusError } from '../api/api-types.ts';
import { type ApiResponse, type ObjectList, type ServedWatchEvent, successStatus } from '../api/responses.ts';
import { badRequest, detailsOf, methodNotAllowed, pathNotFound, unavailable } from '../api/status-errors.ts';
import { type StoredObject, toWireObject } from '../api/stored-object.ts';
import { type Durability, whenAcceptingWrites } from '../storage/durability.ts';
import { StorageBudget, type StorageLimits } from '../storage/storage-budget.ts';
import type { VersionedStore } from '../storage/versioned-store.ts';
import { Watchers } from '../watch/watchers.ts';
import type { Catalogue } from './catalogue.ts';
import { deleteOptionsOf, type ParsedDeleteOptions } from './deletion.ts';
import { listOptionsOf } from './list-options.ts';
import { isWritableSubresource } from './object-update.ts';
import { type ListPage, newest, Reads, storedResource } from './reads.ts';
import { inOneTurn, inTurns, type WriteResult, type WriteStages, Writes } from './writes.ts';

export interface LocalApiDeps {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly store: VersionedStore;
  readonly durability: Durability;
  readonly catalogue: Catalogue;
  /**
   * The maximum number of pending events of a slow watcher; by default enough for one event for
   * each object of a large namespace.
   */
  readonly maxPendingEvents?: number;
  /** Limits of the memory for stored objects; none if not set. */
  readonly storageLimits?: StorageLimits | undefined;
}

const defaultMaxPendingEvents = 16_384;

/**
 * The API server without HTTP: requests are authenticated, parsed and authorized. Errors are thrown
 * as StatusErrors. No response or watch event, not even an error, reveals a change before it is
 * durable.
 */
export class LocalApi implements Disposable {
  readonly context: ServerContext;
  readonly #deps: LocalApiDeps;
  readonly #reads: Reads;
  readonly #writes: Writes;
  readonly #watchers: Watchers;
  readonly #subscription: Disposable;

  constructor(deps: LocalApiDeps) {
    const {
      store,
      clock,
      random,
      catalogue,
      durability,
      maxPendingEvents: maxWaiting = defaultMaxPendingEvents,
      storageLimits,
    } = deps;
    this.#deps = deps;
    this.#reads = new Reads(store, catalogue);
    const budget = storageLimits && new StorageBudget(store, storageLimits);
    this.#writes = new Writes({ store, clock, random, catalogue, namespaces: 'checked', budget });
    // Watchers subscribe to the store before the durability layer does, so that they have received
    // a change when it is reported as committed.
    this.#watchers = new Watchers({ store, durability, clock, random, maxPending: maxWaiting });
    this.#subscription = store.subscribe((change) => durability.append(change));
    this.context = {
      objects: store,
      clock,
      random,
      execute: (call) => this.#execute(call),
      updateSubresource: (call, part) =>
        inOneTurn(this.#update(call, { ...requestOf(call), verb: 'update', subresource: part })).object,
      acceptsWrites: () => durability.acceptsWrites,
      whenAcceptingWrites: (signal) => whenAcceptingWrites(durability, signal),
      onChange: (listener) => store.subscribe(listener),
    };
  }

  /** The number of open watches. */
  get watchers(): number {
    return this.#watchers.size;
  }

  async handle(call: ApiCall, signal: AbortSignal): Promise<ApiResponse> {
    try {
      return await this.#respond(call, signal);
    } finally {
      await this.#whenDurable(call, signal);
    }
  }

  /**
   * Starts a watch. Throws a StatusError for an invalid request; the watch ends without an error
   * when the signal is aborted.
   */
  watch(call: ApiCall, signal: AbortSignal): AsyncIterable<ServedWatchEvent> {
    if (call.entry.storage !== 'stored' || call.subresource !== undefined) throw methodNotAllowed();
    this.#checkVerb(call);
    const options = listOptionsOf(call.query, 'watch');
    return this.#watchers.open(requestOf(call), call.entry, options, signal);
  }

  /** Ends all watches and unsubscribes from changes. */
  [Symbol.dispose](): void {
    this.#watchers[Symbol.dispose]();
    this.#subscription[Symbol.dispose]();
  }

  async #whenDurable({ verb }: ApiCall, signal: AbortSignal): Promise<void> {
    const { store, durability, logger } = this.#deps;
    const { lastChange } = store;
    if (durability.committed >= lastChange) return;
    try {
      await durability.whenCommitted(lastChange, signal);
    } catch (error) {
      if (signal.aborted) throw error;
      // Reads continue while the disk is full.
      if (verb === 'get' || verb === 'list') return;
      logger.error('Failed to commit change', error);
      throw unavailable(`cannot commit the change: ${describeError(error)}`);
    }
  }

  #respond(call: ApiCall, signal: AbortSignal): ApiResponse | Promise<ApiResponse> {
    this.#checkVerb(call);
    const action = actionOf(call);
    if (action !== undefined) return this.#runAction(call, action);
    if (call.entry.storage === 'virtual') throw methodNotAllowed();
    checkSubresource(call);
    const request = requestOf(call);
    switch (call.verb) {
      case 'get':
        return this.#get(call, request);
      case 'list':
        return listResponse(call, this.#reads.list(request, listOptionsOf(call.query, 'list'), newest));
      case 'deletecollection':
        return this.#deleteCollection(call, request, signal);
      case 'delete':
        return this.#delete(call, request);
      case 'watch':
        throw badRequest('a watch must be requested through watch()');
      default:
        return this.#write(call, request);
    }
  }

  async #runAction(call: ApiCall, action: RequestAction): Promise<ApiResponse> {
    const result = toWireObject(await action(call, this.context));
    const code = call.verb === 'create' ? 201 : 200;
    if (result['kind'] === 'Status') return { kind: 'status', code, status: result };
    if (call.verb === 'list') return { kind: 'list', code: 200, list: result as unknown as ObjectList };
    return { kind: 'object', code, object: result };
  }

  #get(call: ApiCall, request: ApiRequest): ApiResponse {
    const version = call.query.get('resourceVersion') ?? '';
    return { kind: 'object', code: 200, object: this.#reads.get(request, version, newest) };
  }

  async #write(call: ApiCall, request: ApiRequest): Promise<ApiResponse> {
    switch (call.verb) {
      case 'create':
        return { kind: 'object', code: 201, object: await inTurns(() => this.#create(call, request)) };
      case 'update': {
        const { object, how } = await inTurns(() => this.#update(call, request));
        return { kind: 'object', code: how === 'created' ? 201 : 200, object };
      }
      default:
        return { kind: 'object', code: 200, object: await inTurns(() => this.#patch(call, request)) };
    }
  }

  #create(call: ApiCall, request: ApiRequest): WriteStages<StoredObject> {
    return this.#writes.create(request, bodyOf(call));
  }

  #update(call: ApiCall, request: ApiRequest): WriteStages<WriteResult> {
    return this.#writes.update(request, bodyOf(call));
  }

  #patch(call: ApiCall, request: ApiRequest): WriteStages<StoredObject> {
    return this.#writes.patch(request, patchOf(call), call.decodePatched);
  }

  #delete(call: ApiCall, request: ApiRequest): ApiResponse {
    const options = deleteOptionsOf(call.body, call.query);
    const { object, how } = this.#writes.delete(withDryRun(request, options), options);
    if (how === 'kept' || call.entry.deleteReturns === 'object') return { kind: 'object', code: 200, object };
    const { name, uid } = object.metadata;
    const details = { ...detailsOf({ resource: call.entry.resource, name }), uid };
    return { kind: 'status', code: 200, status: successStatus(details) };
  }

  /**
   * Deletes the objects of a collection serially: a failure does not undo earlier deletions. Each
   * batch is committed before the next one starts.
   */
  async #deleteCollection(call: ApiCall, request: ApiRequest, signal: AbortSignal): Promise<ApiResponse> {
    const { store, durability } = this.#deps;
    const options = deleteOptionsOf(call.body, call.query);
    const page = this.#reads.list(request, listOptionsOf(call.query, 'list'), newest);
    for (const { metadata } of page.items) {
      if (!durability.acceptsWrites) await this.#whenDurable(call, signal);
      const now = store.get(storedResource(call.entry), metadata.namespace, metadata.name);
      if (now?.metadata.uid !== metadata.uid) continue;
      const one = { ...withDryRun(request, options), namespace: metadata.namespace, name: metadata.name };
      this.#writes.delete({ ...one, verb: 'delete' }, options);
    }
    return listResponse(call, page);
  }

  /** Executes a request of a controller synchronously. */
  #execute(call: ApiCall): StoredObject {
    this.#checkVerb(call);
    const request = requestOf(call);
    const action = actionOf(call);
    if (action !== undefined) return synchronousResult(action(call, this.context));
    switch (call.verb) {
      case 'get':
        return this.#reads.get(request, '', newest);
      case 'create':
        return inOneTurn(this.#create(call, request));
      case 'update':
        return inOneTurn(this.#update(call, request)).object;
      case 'patch':
        return inOneTurn(this.#patch(call, request));
      case 'delete': {
        const options = deleteOptionsOf(call.body, call.query);
        return this.#writes.delete(withDryRun(request, options), options).object;
      }
      default:
        throw new KubelingError(
          'BUG',
          `Cannot execute a ${call.verb} synchronously: only requests for a single object are supported`,
        );
    }
  }

  #checkVerb({ entry, verb, subresource, namespace }: ApiCall): void {
    // For namespaced resources, requests without a namespace can only list and watch.
    const lacksNamespace = entry.resource.scope === 'namespace' && namespace === undefined;
    if (lacksNamespace && verb !== 'list' && verb !== 'watch') throw methodNotAllowed();
    if (subresource === undefined) {
      if (!entry.verbs.includes(verb)) throw methodNotAllowed();
      return;
    }
    const part = entry.subresources.find(({ name }) => name === subresource);
    if (part === undefined) throw pathNotFound();
    if (!part.verbs.includes(verb)) throw methodNotAllowed();
  }
}

function actionOf({ entry: { strategy }, subresource = '' }: ApiCall): RequestAction | undefined {
  return Object.hasOwn(strategy.handlers ?? {}, subresource) ? strategy.handlers?.[subresource] : undefined;
}

/** Streaming subresources such as pods/exec are handled by the HTTP server, not here. */
function checkSubresource({ entry, subresource }: ApiCall): void {
  if (subresource !== undefined && !isWritableSubresource(entry.strategy, subresource)) throw pathNotFound();
}

function synchronousResult(result: JsonObject | Promise<JsonObject>): StoredObject {
  if (result instanceof Promise)
    throw new KubelingError('BUG', 'Cannot execute the request synchronously: its action is asynchronous');
  return result as StoredObject;
}

function requestOf(call: ApiCall): ApiRequest {
  const { user, verb, entry, namespace, name, subresource, query, dryRun, warn } = call;
  return {
    user,
    verb,
    resource: entry.resource,
    namespace,
    name,
    subresource,
    fieldSelector: query.get('fieldSelector') ?? undefined,
    labelSelector: query.get('labelSelector') ?? undefined,
    writeMode: dryRun ? 'dry-run' : 'commit',
    warn,
  };
}

function withDryRun(request: ApiRequest, { writeMode }: ParsedDeleteOptions): ApiRequest {
  return writeMode === 'dry-run' ? { ...request, writeMode: writeMode } : request;
}

function patchOf({ patch: kind, body }: ApiCall): Patch {
  if (kind === undefined) throw unsupportedPatch();
  if (body === undefined) throw badRequest('a patch must have a body');
  return { kind, body };
}

function bodyOf({ body }: ApiCall): unknown {
  if (body === undefined) throw badRequest('a write must have an object as its body');
  return body;
}

function listResponse({ entry: { resource } }: ApiCall, page: ListPage): ApiResponse {
  const { items, version, remaining } = page;
  const list: ObjectList = {
    kind: `${resource.kind}List`,
    apiVersion: apiVersionOf(resource),
    metadata: {
      resourceVersion: String(version),
      ...(page.continue === undefined ? {} : { continue: page.continue }),
      ...(remaining === undefined ? {} : { remainingItemCount: remaining }),
    },
    items,
  };
  return { kind: 'list', code: 200, list };
}

function unsupportedPatch(): StatusError {
  return new StatusError({
    code: 415,
    reason: 'UnsupportedMediaType',
    message: '415: Unsupported Media Type',
    details: {},
  });
}
