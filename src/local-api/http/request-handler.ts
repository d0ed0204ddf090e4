import type { IncomingMessage } from 'node:http';
import { withDeadline } from '../../lib/index.ts';
import type { ApiUser } from '../api/index.ts';
import type { ApiAnswer, WatchLine } from '../api/responses.ts';
import { badRequest, methodNotAllowed, noSuchPath } from '../api/status-errors.ts';
import type { TableWish } from '../output/index.ts';
import { CallReader, type Route, routeOf } from './call-reader.ts';
import { notAcceptable, notAllowed, timedOut, tooManyRequests } from './http-errors.ts';
import {
  includedObject,
  negotiate,
  type OutputForm,
  type Shaping,
  shapedAnswer,
  shapedLine,
} from './negotiation.ts';
import { jsonReply, type Reply, textReply } from './reply.ts';
import { attributesOf, type RequestTarget, type ResourcePath, readTarget } from './request-info.ts';
import { deadlineMs } from './request-options.ts';
import type { CallerFacts, FrontDeps, StreamCall } from './server-deps.ts';
import { isLongList, listPieces, yamlReply } from './streamed-body.ts';
import { LineTexts } from './watch-response.ts';

/** One request as it came in. */
export interface FrontRequest {
  readonly incoming: IncomingMessage;
  readonly facts: CallerFacts;
  readonly auditId: string;
  readonly warn: (text: string) => void;
}

/** What there is to answer. */
export type Handled =
  | { readonly kind: 'reply'; readonly reply: Reply }
  | {
      readonly kind: 'watch';
      readonly lines: AsyncIterator<WatchLine>;
      readonly text: (line: WatchLine) => string | Uint8Array;
    }
  | { readonly kind: 'stream'; readonly call: StreamCall };

const usuallyMostAtOnce = 600;

/** Understands a request, asks whether its caller may, and has it carried out. */
export class RequestHandler {
  readonly #deps: FrontDeps;
  readonly #calls: CallReader;
  readonly #texts: LineTexts;
  /** Told who asks, before it is settled whether they may. */
  readonly #recognized: (incoming: IncomingMessage, user: ApiUser) => void;
  #underWay = 0;

  constructor(deps: FrontDeps, recognized: (incoming: IncomingMessage, user: ApiUser) => void) {
    this.#deps = deps;
    this.#recognized = recognized;
    this.#calls = new CallReader(deps.table);
    this.#texts = new LineTexts(deps.clock);
  }

  /** Throws a StatusError for what is refused. */
  async handle(request: FrontRequest, signal: AbortSignal): Promise<Handled> {
    const target = targetOf(request.incoming);
    const user = await this.#admit(request, target, signal);
    const { path, query } = target;
    if (path.kind !== 'resource') return { kind: 'reply', reply: await this.#page(request, target) };
    const route = routeOf(methodOf(request.incoming), path, query, this.#deps);
    if (route.kind === 'stream')
      return { kind: 'stream', call: streamCall(request, route, path, user, query) };
    if (route.verb === 'watch') return await this.#watch(request, route, user, query, signal);
    return { kind: 'reply', reply: await this.#object(request, route, user, query, signal) };
  }

  /** Whether a connection that wants to become something else may be let go from HTTP for it. */
  mayUpgrade(incoming: IncomingMessage): boolean {
    const { path } = readTarget(incoming.url ?? '/');
    if (path.kind !== 'resource' || path.subresource === undefined) return false;
    const entry = this.#deps.catalogue.find(path.group, path.version, path.resource);
    return entry !== undefined && this.#deps.streams?.serves(entry, path.subresource) === true;
  }

  async #admit(
    { incoming, facts }: FrontRequest,
    target: RequestTarget,
    signal: AbortSignal,
  ): Promise<ApiUser> {
    const { security } = this.#deps;
    const user = await security.authenticate(facts, signal);
    this.#recognized(incoming, user);
    const wanted = attributesOf(methodOf(incoming), target);
    const { allowed, reason } = await security.authorize(user, wanted, signal);
    if (!allowed) throw notAllowed(user, wanted, reason);
    return user;
  }

  async #page({ incoming }: FrontRequest, { path, query }: RequestTarget): Promise<Reply> {
    if (path.kind !== 'other') throw noSuchPath();
    const own = Object.hasOwn(this.#deps.pages ?? {}, path.path) ? this.#deps.pages?.[path.path] : undefined;
    const { accept, 'if-none-match': ifNoneMatch } = incoming.headers;
    const page =
      healthReply(path.path, query, this.#deps) ??
      (await own?.()) ??
      (await this.#deps.published.page({ path: path.path, query, accept, ifNoneMatch }));
    if (page === undefined) throw noSuchPath();
    if (methodOf(incoming) !== 'GET' && methodOf(incoming) !== 'HEAD') throw methodNotAllowed();
    return page;
  }

  async #object(
    request: FrontRequest,
    route: Route,
    user: ApiUser,
    query: URLSearchParams,
    signal: AbortSignal,
  ): Promise<Reply> {
    const { incoming, warn } = request;
    // What can only be sent, such as a review, has no columns to be shown in.
    const cannot =
      route.entry.verbs.includes('get') || route.entry.verbs.includes('list') ? undefined : 'table';
    const form = negotiate(incoming.headers, query, cannot);
    const shaping = this.#shaping(route, form, query);
    const ms = deadlineMs(route.verb, query);
    using _place = this.#takePlace();
    const answer = await this.#within(ms, signal, async (within) => {
      const call = await this.#calls.read({ incoming, user, route, query, warn }, within);
      return await this.#deps.api.handle(call, within);
    });
    return await replyOf(answer, shaping, form);
  }

  /** Bodies and answers take memory while they are under way. */
  #takePlace(): Disposable {
    if (this.#underWay >= (this.#deps.mostAtOnce ?? usuallyMostAtOnce)) throw tooManyRequests();
    this.#underWay++;
    return { [Symbol.dispose]: () => this.#underWay-- };
  }

  async #within(
    ms: number,
    signal: AbortSignal,
    work: (within: AbortSignal) => Promise<ApiAnswer>,
  ): Promise<ApiAnswer> {
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
    { incoming, warn }: FrontRequest,
    route: Route,
    user: ApiUser,
    query: URLSearchParams,
    signal: AbortSignal,
  ): Promise<Handled> {
    const form = negotiate(incoming.headers, query);
    if (form.format !== 'json' || form.shape === 'partial-list')
      throw notAcceptable(['application/json;stream=watch']);
    const shaping = this.#shaping(route, form, query);
    const call = await this.#calls.read({ incoming, user, route, query, warn }, signal);
    const lines = this.#deps.api.watch(call, signal)[Symbol.asyncIterator]();
    return { kind: 'watch', lines, text: this.#lineText(shaping) };
  }

  #lineText(shaping: Shaping): (line: WatchLine) => Uint8Array {
    const { entry, shape, includeObject } = shaping;
    const { group, version, plural } = entry.resource;
    const form = `${group}/${version}/${plural} ${shape} ${includeObject}`;
    let columns: TableWish['columns'] = shape === 'table' ? 'with' : 'without';
    return (line) => {
      const text = this.#texts.of(line, `${form} ${columns}`, () => shapedLine(line, shaping, columns));
      if (line.type !== 'ERROR') columns = 'without';
      return text;
    };
  }

  #shaping({ entry }: Route, { shape }: OutputForm, query: URLSearchParams): Shaping {
    const includeObject = shape === 'table' ? includedObject(query) : 'Metadata';
    return { entry, shape, includeObject, nowMs: () => this.#deps.clock.now() };
  }
}

function targetOf(incoming: IncomingMessage): RequestTarget {
  const target = readTarget(incoming.url ?? '/');
  if (target.path.kind === 'garbled') throw badRequest('the path of the request cannot be read');
  return target;
}

function methodOf(incoming: IncomingMessage): string {
  return incoming.method ?? 'GET';
}

function streamCall(
  { incoming, auditId }: FrontRequest,
  { entry, namespace, name, subresource }: Route,
  { rest }: ResourcePath,
  user: ApiUser,
  query: URLSearchParams,
): StreamCall {
  if (name === undefined || subresource === undefined) throw noSuchPath();
  return { user, entry, namespace, name, subresource, rest, query, incoming, auditId };
}

async function replyOf(answer: ApiAnswer, shaping: Shaping, form: OutputForm): Promise<Reply> {
  if (isLongList(answer) && form.format === 'json') {
    const headers = { 'Content-Type': 'application/json' };
    return { status: answer.code, headers, body: listPieces(answer, shaping, form.layout) };
  }
  const value = shapedAnswer(answer, shaping);
  return form.format === 'yaml' ? yamlReply(answer.code, value) : jsonReply(answer.code, value, form.layout);
}

const endpoints: ReadonlySet<string> = new Set(['healthz', 'livez', 'readyz']);

/** Undefined for a path that asks for something else. `/readyz/name` asks for one check alone. */
export function healthReply(
  path: string,
  query: URLSearchParams,
  { checks = {} }: Pick<FrontDeps, 'checks'>,
): Reply | undefined {
  const [, endpoint = '', name, ...rest] = path.split('/');
  if (!endpoints.has(endpoint) || rest.length > 0) return undefined;
  const asked: Checks = { ping: () => undefined, ...(endpoint === 'livez' ? {} : checks) };
  if (name !== undefined)
    return Object.hasOwn(asked, name) ? judged(name, { [name]: asked[name] }) : undefined;
  const excluded = new Set(query.getAll('exclude'));
  const left = Object.fromEntries(Object.entries(asked).filter(([check]) => !excluded.has(check)));
  return judged(endpoint, left, query.has('verbose') ? 'verbose' : 'brief');
}

type Checks = Readonly<Record<string, (() => string | undefined) | undefined>>;

function judged(what: string, checks: Checks, length: 'verbose' | 'brief' = 'brief'): Reply {
  const results = Object.entries(checks).map(([name, check]) => ({ name, problem: check?.() }));
  const failed = results.some(({ problem }) => problem !== undefined);
  if (!failed && length === 'brief') return textReply(200, 'ok');
  const lines = results.map(({ name, problem }) =>
    problem === undefined ? `[+]${name} ok` : `[-]${name} failed: ${problem}`,
  );
  const verdict = `${what} check ${failed ? 'failed' : 'passed'}`;
  return textReply(failed ? 500 : 200, `${[...lines, verdict].join('\n')}\n`);
}
