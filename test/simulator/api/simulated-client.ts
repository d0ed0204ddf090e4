import type {
  ApiClient,
  ApiList,
  ApiObject,
  Collection,
  DeleteOptions,
  GetOptions,
  ListQuery,
  ObjectRef,
  Patch,
  WatchEvent,
  WatchQuery,
} from '../../../src/api/index.ts';
import {
  type ApiRequest,
  type ApiUser,
  type ApiVerb,
  authorize,
  type Freshness,
  type Reads,
  type VersionedStore,
} from '../../../src/local-api/api/index.ts';
import type { ApiGate } from './gate.ts';
import { answered } from './refused.ts';
import type { Watches } from './watches.ts';

/** Executes a request that has arrived at the server. */
const plainListOptions = {
  limit: 0,
  continue: '',
  resourceVersion: '',
  match: '',
  timeoutSeconds: 0,
  bookmarks: 'disabled',
  initialEvents: 'unset',
} as const;

export interface ApiServerParts {
  readonly gate: ApiGate;
  readonly store: VersionedStore;
  readonly reads: Reads;
  readonly watches: Watches;
  create(request: ApiRequest, object: unknown): unknown;
  post(request: ApiRequest, object: unknown): unknown;
  update(request: ApiRequest, object: unknown): unknown;
  patch(request: ApiRequest, patch: Patch): unknown;
  delete(request: ApiRequest, options: DeleteOptions): void;
}

/** The client of one user of the simulated API server. */
export class SimulatedClient implements ApiClient {
  readonly #parts: ApiServerParts;
  readonly #user: ApiUser;
  readonly #deadlineMs: number;

  constructor(parts: ApiServerParts, user: ApiUser, deadlineMs: number) {
    this.#parts = parts;
    this.#user = user;
    this.#deadlineMs = deadlineMs;
  }

  get<T extends ApiObject>(ref: ObjectRef, options: GetOptions, signal: AbortSignal): Promise<T> {
    const request = this.#request('get', ref);
    const { resourceVersion = '' } = options;
    return this.#call<T>(
      request,
      (freshness) => this.#parts.reads.get(request, resourceVersion, freshness),
      signal,
    );
  }

  list<T extends ApiObject>(query: ListQuery, signal: AbortSignal): Promise<ApiList<T>> {
    const request = this.#request('list', query);
    return this.#call(request, (freshness) => this.#page(request, query, freshness), signal);
  }

  #page(request: ApiRequest, query: ListQuery, freshness: Freshness): ApiList<ApiObject> {
    const { limit = 0, continue: token = '', resourceVersion = '' } = query;
    const options = { ...plainListOptions, limit, continue: token, resourceVersion };
    const { items, version, continue: next } = this.#parts.reads.list(request, options, freshness);
    const more = next === undefined ? {} : { continue: next };
    return { metadata: { resourceVersion: String(version), ...more }, items };
  }

  async *watch<T extends ApiObject>(query: WatchQuery, signal: AbortSignal): AsyncGenerator<WatchEvent<T>> {
    const request = this.#request('watch', query);
    // The watch is opened only when the response has arrived, so that it always has a reader.
    await this.#call(request, () => undefined, signal);
    const feed = answered(request, () => this.#parts.watches.open(request, query));
    yield* feed.items(signal) as AsyncGenerator<WatchEvent<T>, void, undefined>;
  }

  create<T extends ApiObject>(at: Collection, object: ApiObject, signal: AbortSignal): Promise<T> {
    const request = this.#request('create', at, object);
    return this.#call(request, () => this.#parts.create(request, request.body), signal);
  }

  post<T extends ApiObject>(ref: ObjectRef, object: ApiObject, signal: AbortSignal): Promise<T> {
    const request = this.#request('create', ref, object);
    return this.#call(request, () => this.#parts.post(request, request.body), signal);
  }

  update<T extends ApiObject>(ref: ObjectRef, object: ApiObject, signal: AbortSignal): Promise<T> {
    const request = this.#request('update', ref, object);
    return this.#call(request, () => this.#parts.update(request, request.body), signal);
  }

  patch<T extends ApiObject>(ref: ObjectRef, patch: Patch, signal: AbortSignal): Promise<T> {
    const request = this.#request('patch', ref, patch);
    return this.#call(request, () => this.#parts.patch(request, request.body as Patch), signal);
  }

  delete(ref: ObjectRef, options: DeleteOptions, signal: AbortSignal): Promise<void> {
    const request = this.#request('delete', ref, options);
    return this.#call(request, () => this.#parts.delete(request, options), signal);
  }

  /**
   * Copies the request when the call starts, so that later changes by the caller have no effect.
   */
  #request(
    verb: ApiVerb,
    asked: Partial<ObjectRef> & Collection & Partial<ListQuery>,
    body?: unknown,
  ): ApiRequest {
    const { resource, namespace, name, subresource, fieldSelector, labelSelector } = asked;
    return {
      user: this.#user,
      verb,
      resource,
      namespace,
      name,
      subresource,
      fieldSelector,
      labelSelector,
      body: body === undefined ? undefined : (JSON.parse(JSON.stringify(body)) as unknown),
    };
  }

  #call<T>(request: ApiRequest, effect: (freshness: Freshness) => unknown, signal: AbortSignal): Promise<T> {
    const { gate, store } = this.#parts;
    const carriedOut = (freshness: Freshness) =>
      answered(request, () => {
        authorize(request, store);
        return effect(freshness) as T;
      });
    return gate.call(request, carriedOut, this.#deadlineMs, signal);
  }
}
