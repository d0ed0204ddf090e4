import { type Clock, KubelingError } from '../../lib/index.ts';
import { WatchStream } from '../reflector/watch-stream.ts';
import type { WireRequest } from '../transport/connection-pool.ts';
import { transportError } from '../transport/failures.ts';
import type { RateLimit } from '../transport/rate-limit.ts';
import type { Reachability } from '../transport/reachability.ts';
import { decodeObject, readText } from './answers.ts';
import type { ClientCall, RetryingCaller, SuccessfulResponse } from './calls.ts';
import type {
  ApiClient,
  ApiList,
  ApiObject,
  DeleteOptions,
  GetOptions,
  ListQuery,
  Patch,
  WatchEvent,
  WatchQuery,
} from './client.ts';
import { apiVersionOf, type Collection, collectionPath, type ObjectRef, objectPath } from './resource.ts';
import { type Repetition, repetitionOfPatch, repetitionOfPost } from './retry.ts';

export interface WireClientOptions {
  readonly caller: RetryingCaller;
  readonly clock: Clock;
  readonly reachability: Reachability;
  /** The size limit of a response. */
  readonly longestBody: number;
  /** The size limit of a watch event. */
  readonly longestEvent: number;
}

/**
 * A watch that is still open this long after its requested end is aborted: its server is considered
 * dead.
 */
const watchSlackMs = 30_000;

const patchTypes = {
  json: 'application/json-patch+json',
  merge: 'application/merge-patch+json',
  strategic: 'application/strategic-merge-patch+json',
} as const;

interface RequestSpec {
  readonly verb: string;
  readonly method: WireRequest['method'];
  readonly at: Collection | ObjectRef;
  readonly path: string;
  readonly repetition: Repetition;
  readonly body?: unknown;
  readonly type?: string;
}

/** The API client over the network. */
export class WireClient implements ApiClient {
  readonly #options: WireClientOptions;

  constructor(options: WireClientOptions) {
    this.#options = options;
  }

  async get<T extends ApiObject>(ref: ObjectRef, options: GetOptions, signal: AbortSignal): Promise<T> {
    const path = objectPath(ref) + queryOf({ resourceVersion: options.resourceVersion });
    return await this.#send<T>({ verb: 'get', method: 'GET', at: ref, path, repetition: 'harmless' }, signal);
  }

  async list<T extends ApiObject>(query: ListQuery, signal: AbortSignal): Promise<ApiList<T>> {
    const { fieldSelector, labelSelector, resourceVersion, limit } = query;
    const parameters = { fieldSelector, labelSelector, resourceVersion, limit, continue: query.continue };
    const path = collectionPath(query) + queryOf(parameters);
    const list = await this.#send<RawList<T>>(
      { verb: 'list', method: 'GET', at: query, path, repetition: 'harmless' },
      signal,
    );
    return completeList(list, query);
  }

  async *watch<T extends ApiObject>(
    query: WatchQuery,
    signal: AbortSignal,
  ): AsyncGenerator<WatchEvent<T>, void, undefined> {
    using stream = await this.#open(query, signal);
    yield* stream.events<T>();
  }

  async create<T extends ApiObject>(at: Collection, object: ApiObject, signal: AbortSignal): Promise<T> {
    const path = collectionPath(at);
    const repetition = repetitionOfPost(at.resource);
    const body = withKind(object, at);
    return await this.#send<T>({ verb: 'create', method: 'POST', at, path, repetition, body }, signal);
  }

  async post<T extends ApiObject>(ref: ObjectRef, body: ApiObject, signal: AbortSignal): Promise<T> {
    const path = objectPath(ref);
    return await this.#send<T>(
      { verb: 'post', method: 'POST', at: ref, path, repetition: 'unsafe', body },
      signal,
    );
  }

  async update<T extends ApiObject>(ref: ObjectRef, object: ApiObject, signal: AbortSignal): Promise<T> {
    const path = objectPath(ref);
    const body = withKind(object, ref);
    return await this.#send<T>(
      { verb: 'update', method: 'PUT', at: ref, path, repetition: 'same-effect', body },
      signal,
    );
  }

  async patch<T extends ApiObject>(ref: ObjectRef, patch: Patch, signal: AbortSignal): Promise<T> {
    const { kind, body } = patch;
    const repetition = repetitionOfPatch(kind);
    const spec = { verb: 'patch', method: 'PATCH', at: ref, path: objectPath(ref), repetition } as const;
    return await this.#send<T>({ ...spec, body, type: patchTypes[kind] }, signal);
  }

  async delete(ref: ObjectRef, options: DeleteOptions, signal: AbortSignal): Promise<void> {
    const { gracePeriodSeconds, uid, resourceVersion } = options;
    const preconditions =
      uid === undefined && resourceVersion === undefined ? undefined : { uid, resourceVersion };
    const body = { apiVersion: 'v1', kind: 'DeleteOptions', gracePeriodSeconds, preconditions };
    const spec = { verb: 'delete', method: 'DELETE', at: ref, path: objectPath(ref) } as const;
    await this.#send({ ...spec, repetition: 'same-effect', body }, signal);
  }

  setRate(rate: RateLimit): void {
    this.#options.caller.setRate(rate);
  }

  onReturn(listener: () => void): Disposable {
    return this.#options.reachability.onReturn(listener);
  }

  /** Reads text at a path of the server, for example `/healthz` or `/version`. */
  async text(path: `/${string}`, signal: AbortSignal): Promise<string> {
    const what = `get ${path}`;
    const limit = this.#options.longestBody;
    const request: WireRequest = { method: 'GET', path, headers: { accept: '*/*' }, body: undefined };
    const consume = ({ message }: SuccessfulResponse, inTime: AbortSignal) =>
      readText(message, { what, limit }, inTime);
    return await this.#options.caller.call(
      { verb: 'get', what, request, repetition: 'harmless', consume },
      signal,
    );
  }

  async #send<T>(spec: RequestSpec, signal: AbortSignal): Promise<T> {
    const what = `${spec.verb} ${describeTarget(spec.at)}`;
    const call: ClientCall<T> = {
      verb: spec.verb,
      what,
      request: requestFor(spec),
      repetition: spec.repetition,
      consume: async ({ message }, inTime) => {
        const text = await readText(message, { what, limit: this.#options.longestBody }, inTime);
        // An empty response to a delete request is valid.
        const json = text === '' && spec.method === 'DELETE' ? '{}' : text;
        return decodeObject(json, { what, type: message.headers['content-type'] }) as T;
      },
    };
    return await this.#options.caller.call(call, signal);
  }

  async #open(query: WatchQuery, signal: AbortSignal): Promise<WatchStream> {
    const what = `watch ${describeTarget(query)}`;
    const path = collectionPath(query) + queryOf(watchParameters(query));
    const request: WireRequest = { method: 'GET', path, headers: {}, body: undefined };
    const consume = async (response: SuccessfulResponse) =>
      this.#stream(query, { ...response, what }, signal);
    return await this.#options.caller.call(
      { verb: 'watch', what, request, repetition: 'harmless', response: 'stream', consume },
      signal,
    );
  }

  #stream(
    query: WatchQuery,
    { what, pool, access, message }: SuccessfulResponse & { readonly what: string },
    signal: AbortSignal,
  ): WatchStream {
    const { clock, longestEvent } = this.#options;
    const stream: WatchStream = new WatchStream(
      message,
      {
        what,
        clock,
        deadlineMs: query.timeoutSeconds * 1_000 + watchSlackMs,
        longestLine: longestEvent,
        explain: (cause) => transportError({ what, access, cause, peer: undefined, now: clock.now() }),
        onClose: () => pool.releaseWatch(stream),
      },
      signal,
    );
    pool.holdWatch(stream);
    return stream;
  }
}

function requestFor({ method, path, body, type = 'application/json' }: RequestSpec): WireRequest {
  if (body === undefined) return { method, path, headers: {}, body: undefined };
  const text = JSON.stringify(body);
  const headers = { 'content-type': type, 'content-length': String(Buffer.byteLength(text)) };
  return { method, path, headers, body: text };
}

function watchParameters(query: WatchQuery): Readonly<Record<string, string | number | undefined>> {
  const { fieldSelector, labelSelector, resourceVersion, timeoutSeconds } = query;
  const initial = { sendInitialEvents: 'true', resourceVersionMatch: 'NotOlderThan' };
  return {
    watch: 'true',
    allowWatchBookmarks: 'true',
    fieldSelector,
    labelSelector,
    resourceVersion,
    timeoutSeconds,
    ...(query.begin === 'initial' ? initial : {}),
  };
}

/** Adds the kind and API version, because a server may store objects exactly as received. */
function withKind(object: ApiObject, { resource }: Collection): ApiObject {
  return { apiVersion: apiVersionOf(resource), kind: resource.kind, ...object };
}

interface RawList<T> {
  readonly metadata?: { readonly resourceVersion?: string; readonly continue?: string };
  readonly items?: readonly T[] | null;
}

/** Adds kind and API version to list items, which have none, unlike the objects of watch events. */
function completeList<T extends ApiObject>({ metadata, items }: RawList<T>, at: Collection): ApiList<T> {
  if (!Array.isArray(items ?? [])) {
    const message = `Cannot list ${describeTarget(at)} as the response must have a list of items`;
    throw new KubelingError('API_BAD_ANSWER', message);
  }
  return {
    metadata: { resourceVersion: metadata?.resourceVersion ?? '', continue: metadata?.continue || undefined },
    items: (items ?? []).map((item) => withKind(item, at) as T),
  };
}

/**
 * Describes the target of a request for error messages, for example "pods/web/status in default".
 */
function describeTarget(at: Collection | ObjectRef): string {
  const parts = 'name' in at ? [at.name, at.subresource] : [];
  const path = [at.resource.plural, ...parts].filter((part) => part !== undefined).join('/');
  return at.namespace === undefined ? path : `${path} in ${at.namespace}`;
}

/** Builds a query string without undefined and empty values. */
function queryOf(parameters: Readonly<Record<string, string | number | undefined>>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== undefined && value !== '') query.set(name, String(value));
  }
  return query.size === 0 ? '' : `?${query}`;
}
