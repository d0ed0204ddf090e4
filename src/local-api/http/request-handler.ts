import type { IncomingMessage } from 'node:http';
import { withDeadline } from '../../lib/index.ts';
import { maxAnonymousTarget } from '../../protocols/http1/index.ts';
import type { ApiUser } from '../api/index.ts';
import type { ApiResponse, ServedWatchEvent } from '../api/responses.ts';
import { badRequest, methodNotAllowed, pathNotFound } from '../api/status-errors.ts';
import type { TableOptions } from '../output/index.ts';
import { type ApiRoute, CallReader, routeRequest } from './call-reader.ts';
import { accessDenied, notAcceptable, timedOut, tooManyRequests, uriTooLong } from './http-errors.ts';
import {
  includedObject,
  type NegotiatedOutput,
  negotiate,
  type OutputContext,
  renderResponse,
  renderWatchEvent,
} from './negotiation.ts';
import { jsonReply, type Reply, textReply } from './reply.ts';
import {
  type ApiRequestTarget,
  authorizationAttributes,
  parseTarget,
  type ResourcePath,
} from './request-info.ts';
import { deadlineMs } from './request-options.ts';
import type { ApiServerDeps, ClientInfo, StreamCall } from './server-deps.ts';
import { isLongList, listChunks, yamlReply } from './streamed-body.ts';
import { EncodedEvents } from './watch-response.ts';

/** An incoming API request with its client and audit ID. */
export interface IncomingApiRequest {
  readonly incoming: IncomingMessage;
  readonly client: ClientInfo;
  readonly auditId: string;
  readonly warn: (text: string) => void;
}

/** How a request is answered: with a response, a watch or a stream. */
export type HandlerResult =
  | { readonly kind: 'reply'; readonly reply: Reply }
  | {
      readonly kind: 'watch';
      readonly lines: AsyncIterator<ServedWatchEvent>;
      readonly text: (line: ServedWatchEvent) => string | Uint8Array;
    }
  | { readonly kind: 'stream'; readonly call: StreamCall };

const defaultMaxInFlight = 600;

/** Parses, authorizes and executes requests. */
export class RequestHandler {
  readonly #deps: ApiServerDeps;
  readonly #calls: CallReader;
  readonly #encodedEvents: EncodedEvents;
  /** Called with the user of a request after authentication, before authorization. */
  readonly #onAuthenticated: (incoming: IncomingMessage, user: ApiUser) => void;
  #inFlight = 0;

  constructor(deps: ApiServerDeps, recognized: (incoming: IncomingMessage, user: ApiUser) => void) {
    this.#deps = deps;
    this.#onAuthenticated = recognized;
    this.#calls = new CallReader(deps.table);
    this.#encodedEvents = new EncodedEvents(deps.clock);
  }

  /** Handles a request; throws a StatusError for a rejected one. */
  async handle(request: IncomingApiRequest, signal: AbortSignal): Promise<HandlerResult> {
    const target = targetOf(request.incoming);
    const user = await this.#authorize(request, target, signal);
    const { path } = target;
    if (path.kind !== 'resource') return { kind: 'reply', reply: await this.#document(request, target) };
    const { query } = target;
    const route = routeRequest(methodOf(request.incoming), path, query, this.#deps);
    if (route.kind === 'stream')
      return { kind: 'stream', call: streamCall(request, route, path, user, query) };
    if (route.verb === 'watch') return await this.#watch(request, route, user, query, signal);
    return { kind: 'reply', reply: await this.#handleObject(request, route, user, query, signal) };
  }

  /** Whether a request may be upgraded from HTTP to another protocol. */
  mayUpgrade(incoming: IncomingMessage): boolean {
    const { path } = parseTarget(incoming.url ?? '/');
    if (path.kind !== 'resource' || path.subresource === undefined) return false;
    const entry = this.#deps.catalogue.find(path.group, path.version, path.resource);
    return entry !== undefined && this.#deps.streams?.serves(entry, path.subresource) === true;
  }

  async #authorize(
    { incoming, client }: IncomingApiRequest,
    target: ApiRequestTarget,
    signal: AbortSignal,
  ): Promise<ApiUser> {
    const { security } = this.#deps;
    const user = await security.authenticate(client, signal);
    this.#onAuthenticated(incoming, user);
    const isAnonymous = user.groups.includes('system:unauthenticated');
    if (isAnonymous && target.length > maxAnonymousTarget) throw uriTooLong(maxAnonymousTarget);
    const attributes = authorizationAttributes(methodOf(incoming), target);
    const { allowed, reason } = await security.authorize(user, attributes, signal);
    if (!allowed) throw accessDenied(user, attributes, reason);
    return user;
  }

  async #document({ incoming }: IncomingApiRequest, { path, query }: ApiRequestTarget): Promise<Reply> {
    if (path.kind !== 'other') throw pathNotFound();
    const own = Object.hasOwn(this.#deps.extraDocuments ?? {}, path.path)
      ? this.#deps.extraDocuments?.[path.path]
      : undefined;
    const { accept, 'if-none-match': ifNoneMatch } = incoming.headers;
    const page =
      healthReply(path.path, query, this.#deps) ??
      (await own?.()) ??
      (await this.#deps.documents.document({ path: path.path, query, accept, ifNoneMatch }));
    if (page === undefined) throw pathNotFound();
    if (methodOf(incoming) !== 'GET' && methodOf(incoming) !== 'HEAD') throw methodNotAllowed();
    return page;
  }

  async #handleObject(
    request: IncomingApiRequest,
    route: ApiRoute,
    user: ApiUser,
    query: URLSearchParams,
    signal: AbortSignal,
  ): Promise<Reply> {
    const { incoming, warn } = request;
    // Virtual resources such as reviews have no table columns.
    const cannot =
      route.entry.verbs.includes('get') || route.entry.verbs.includes('list') ? undefined : 'table';
    const form = negotiate(incoming.headers, query, cannot);
    const shaping = this.#outputContext(route, form, query);
    const ms = deadlineMs(route.verb, query);
    using _place = this.#acquireSlot();
    const response = await this.#withDeadline(ms, signal, async (within) => {
      const call = await this.#calls.read({ incoming, user, route, query, warn }, within);
      return await this.#deps.api.handle(call, within);
    });
    return await toReply(response, shaping, form);
  }

  /**
   * Counts an in-flight request; their number is limited, because each holds its body and response
   * in memory.
   */
  #acquireSlot(): Disposable {
    if (this.#inFlight >= (this.#deps.maxInFlight ?? defaultMaxInFlight)) throw tooManyRequests();
    this.#inFlight++;
    return { [Symbol.dispose]: () => this.#inFlight-- };
  }

  async #withDeadline(
    ms: number,
    signal: AbortSignal,
    work: (within: AbortSignal) => Promise<ApiResponse>,
  ): Promise<ApiResponse> {
    let isOver = false;
    using _timer = this.#deps.clock.timer(ms, () => {
      isOver = true;
    });
    try {
      return await withDeadline({ clock: this.#deps.clock, ms, what: 'answer a request' }, work, signal);
    } catch (error) {
      throw isOver && !signal.aborted ? timedOut(ms) : error;
    }
  }

  async #watch(
    { incoming, warn }: IncomingApiRequest,
    route: ApiRoute,
    user: ApiUser,
    query: URLSearchParams,
    signal: AbortSignal,
  ): Promise<HandlerResult> {
    const form = negotiate(incoming.headers, query);
    if (form.format !== 'json' || form.shape === 'partial-list')
      throw notAcceptable(['application/json;stream=watch']);
    const shaping = this.#outputContext(route, form, query);
    const call = await this.#calls.read({ incoming, user, route, query, warn }, signal);
    const lines = this.#deps.api.watch(call, signal)[Symbol.asyncIterator]();
    return { kind: 'watch', lines, text: this.#eventEncoder(shaping) };
  }

  #eventEncoder(shaping: OutputContext): (line: ServedWatchEvent) => Uint8Array {
    const { entry, shape, includeObject } = shaping;
    const { group, version, plural } = entry.resource;
    const form = `${group}/${version}/${plural} ${shape} ${includeObject}`;
    let columns: TableOptions['columns'] = shape === 'table' ? 'with' : 'without';
    return (line) => {
      const text = this.#encodedEvents.of(line, `${form} ${columns}`, () =>
        renderWatchEvent(line, shaping, columns),
      );
      if (line.type !== 'ERROR') columns = 'without';
      return text;
    };
  }

  #outputContext({ entry }: ApiRoute, { shape }: NegotiatedOutput, query: URLSearchParams): OutputContext {
    const includeObject = shape === 'table' ? includedObject(query) : 'Metadata';
    return { entry, shape, includeObject, nowMs: () => this.#deps.clock.now() };
  }
}

function targetOf(incoming: IncomingMessage): ApiRequestTarget {
  const target = parseTarget(incoming.url ?? '/');
  if (target.path.kind === 'garbled') throw badRequest('the path of the request is malformed');
  return target;
}

function methodOf(incoming: IncomingMessage): string {
  return incoming.method ?? 'GET';
}

function streamCall(
  { incoming, auditId }: IncomingApiRequest,
  { entry, namespace, name, subresource }: ApiRoute,
  { rest }: ResourcePath,
  user: ApiUser,
  query: URLSearchParams,
): StreamCall {
  if (name === undefined || subresource === undefined) throw pathNotFound();
  return { user, entry, namespace, name, subresource, rest, query, incoming, auditId };
}

async function toReply(
  response: ApiResponse,
  shaping: OutputContext,
  form: NegotiatedOutput,
): Promise<Reply> {
  if (isLongList(response) && form.format === 'json') {
    const headers = { 'Content-Type': 'application/json' };
    return { status: response.code, headers, body: listChunks(response, shaping, form.layout) };
  }
  const value = renderResponse(response, shaping);
  return form.format === 'yaml'
    ? yamlReply(response.code, value)
    : jsonReply(response.code, value, form.layout);
}

const endpoints: ReadonlySet<string> = new Set(['healthz', 'livez', 'readyz']);

/**
 * Responds to health check paths; undefined for other paths. `/readyz/name` runs a single check.
 */
function healthReply(
  path: string,
  query: URLSearchParams,
  { checks = {} }: Pick<ApiServerDeps, 'checks'>,
): Reply | undefined {
  const [, endpoint = '', name, ...rest] = path.split('/');
  if (!endpoints.has(endpoint) || rest.length > 0) return undefined;
  const available: Checks = { ping: () => undefined, ...(endpoint === 'livez' ? {} : checks) };
  if (name !== undefined)
    return Object.hasOwn(available, name) ? runChecks(name, { [name]: available[name] }) : undefined;
  const excluded = new Set(query.getAll('exclude'));
  const selected = Object.fromEntries(Object.entries(available).filter(([check]) => !excluded.has(check)));
  return runChecks(endpoint, selected, query.has('verbose') ? 'verbose' : 'brief');
}

type Checks = Readonly<Record<string, (() => string | undefined) | undefined>>;

function runChecks(what: string, checks: Checks, length: 'verbose' | 'brief' = 'brief'): Reply {
  const results = Object.entries(checks).map(([name, check]) => ({ name, problem: check?.() }));
  const failed = results.some(({ problem }) => problem !== undefined);
  if (!failed && length === 'brief') return textReply(200, 'ok');
  const lines = results.map(({ name, problem }) =>
    problem === undefined ? `[+]${name} ok` : `[-]${name} failed: ${problem}`,
  );
  const summary = `${what} check ${failed ? 'failed' : 'passed'}`;
  return textReply(failed ? 500 : 200, `${[...lines, summary].join('\n')}\n`);
}
