import type { IncomingHttpHeaders } from 'node:http';
import type { Duplex } from 'node:stream';

/** A request as handlers see it. */
export interface Request {
  readonly method: string;
  readonly path: string;
  /** What stands in place of the names in braces in the route's path, decoded. */
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  /** All of it; rejects when it is longer. Only for routes that say they read one. */
  body(maxBytes: number, signal: AbortSignal): Promise<string>;
}

export interface Response {
  readonly status: number;
  readonly contentType: string;
  readonly headers?: Readonly<Record<string, string>>;
  /**
   * Chunks are sent as they come, no faster than the client reads them, and the headers before the first of them. An
   * iterable must end when the signal its handler was given is aborted: that is how it hears that the client is gone.
   */
  readonly body: string | AsyncIterable<Uint8Array>;
}

/** What is known of who answers before anything is asked of it. */
export interface RoutePattern {
  /**
   * Whole segments, compared to the letter; `{name}` stands for any one that is not empty. A path that ends in a slash
   * takes everything below it too.
   */
  readonly path: string;
  readonly methods: readonly string[] | 'any';
}

export interface Route extends RoutePattern {
  /** Whether it wants what the client sends along; it is dropped unless it does. */
  readonly body?: 'read' | undefined;
  /** The signal is aborted when the client goes away or the server closes, also while the body is being sent. */
  answer(request: Request, signal: AbortSignal): Promise<Response> | Response;
}

/** A client's connection that asks to speak something else from here on. */
export interface UpgradeCall {
  readonly request: Request;
  /** As it was written, for whoever passes it on. */
  readonly target: string;
  readonly rawHeaders: readonly string[];
  readonly socket: Duplex;
  /** What the client sent right behind its request; the first bytes of the other protocol. */
  readonly head: Uint8Array;
}

export interface UpgradeRoute extends RoutePattern {
  /**
   * Answers a response to refuse, and the connection is closed after it; otherwise the handler takes the connection
   * over until its promise settles, and it is closed then. The signal is aborted when the server closes.
   */
  upgrade(call: UpgradeCall, signal: AbortSignal): Promise<Response | undefined>;
}

export function text(status: number, body: string): Response {
  return { status, contentType: 'text/plain; charset=utf-8', body };
}

/** Says that what would be here is switched off. */
export function disabledRoute(path: string, message: string): Route {
  return { path, methods: 'any', answer: () => text(405, message) };
}

export function json(value: unknown): Response {
  return { status: 200, contentType: 'application/json', body: JSON.stringify(value) };
}

export type Choice<R> =
  | { readonly kind: 'found'; readonly route: R; readonly params: Readonly<Record<string, string>> }
  | { readonly kind: 'refused'; readonly response: Response };

/** Finds who answers; nobody and the wrong method are answers too. The first that fits wins. */
export function choose<R extends RoutePattern>(
  routes: readonly R[],
  method: string,
  path: string,
): Choice<R> {
  let isKnown = false;
  for (const route of routes) {
    const params = match(route.path, path);
    if (params === undefined) continue;
    isKnown = true;
    if (route.methods === 'any' || route.methods.includes(method)) return { kind: 'found', route, params };
  }
  const response = isKnown ? text(405, '405: Method Not Allowed') : text(404, '404: Page Not Found');
  return { kind: 'refused', response };
}

/** The parameters if the path fits. */
function match(pattern: string, path: string): Readonly<Record<string, string>> | undefined {
  if (pattern.endsWith('/')) {
    return path.startsWith(pattern) || path === pattern.slice(0, -1) ? {} : undefined;
  }
  const wanted = pattern.split('/');
  const given = path.split('/');
  if (wanted.length !== given.length) return undefined;
  const params: Record<string, string> = {};
  for (const [index, segment] of wanted.entries()) {
    const value = given[index] ?? '';
    const name = /^\{(\w+)\}$/.exec(segment)?.[1];
    if (name === undefined ? segment !== value : value === '') return undefined;
    if (name === undefined) continue;
    const decoded = decode(value);
    if (decoded === undefined) return undefined;
    params[name] = decoded;
  }
  return params;
}

function decode(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}
