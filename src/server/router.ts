import type { IncomingHttpHeaders } from 'node:http';
import type { Duplex } from 'node:stream';

/** A request as route handlers receive it. */
export interface Request {
  readonly method: string;
  readonly path: string;
  /** Decoded path segments by the name in braces in the route's path. */
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  /**
   * Reads the complete body; rejects when it exceeds `maxBytes`. Only for routes whose `body` is
   * `read`.
   */
  body(maxBytes: number, signal: AbortSignal): Promise<string>;
}

export interface Response {
  readonly status: number;
  readonly contentType: string;
  readonly headers?: Readonly<Record<string, string>>;
  /**
   * The response body. Headers are sent before the first chunk, and each chunk is sent when it is
   * yielded, no faster than the client reads. An iterable must end when its handler's signal is
   * aborted, because that signals that the client disconnected.
   */
  readonly body: string | AsyncIterable<Uint8Array>;
}

/** Path and methods that the router matches. */
export interface RoutePattern {
  /**
   * Path of the route. Segments are compared case-sensitively; `{name}` matches any non-empty
   * segment. A path with a trailing slash matches all paths below it.
   */
  readonly path: string;
  readonly methods: readonly string[] | 'any';
}

export interface Route extends RoutePattern {
  /** Whether the handler reads the body; otherwise the body is dropped. */
  readonly body?: 'read' | undefined;
  /**
   * Handles a request. The signal is aborted when the client disconnects or the server closes, also
   * while the body is sent.
   */
  answer(request: Request, signal: AbortSignal): Promise<Response> | Response;
}

/** An upgrade request with the client's connection. */
export interface UpgradeCall {
  readonly request: Request;
  /** The request target exactly as the client sent it, for forwarding. */
  readonly target: string;
  readonly rawHeaders: readonly string[];
  readonly socket: Duplex;
  /** Bytes that the client sent directly after its request; they belong to the new protocol. */
  readonly head: Uint8Array;
}

export interface UpgradeRoute extends RoutePattern {
  /**
   * Returns a response to reject the upgrade, after which the connection is closed. Otherwise the
   * handler owns the connection until its promise settles; then it is closed. The signal is
   * aborted when the server closes.
   */
  upgrade(call: UpgradeCall, signal: AbortSignal): Promise<Response | undefined>;
}

export function text(status: number, body: string): Response {
  return { status, contentType: 'text/plain; charset=utf-8', body };
}

/** A route whose response reports that the endpoint is disabled. */
export function disabledRoute(path: string, message: string): Route {
  return { path, methods: 'any', answer: () => text(405, message) };
}

export function json(value: unknown): Response {
  return { status: 200, contentType: 'application/json', body: JSON.stringify(value) };
}

export type Choice<R> =
  | { readonly kind: 'found'; readonly route: R; readonly params: Readonly<Record<string, string>> }
  | { readonly kind: 'refused'; readonly response: Response };

/** Finds the first route that matches the request; otherwise returns a 404 or 405 response. */
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

/** Values of the names in braces when the path matches; otherwise undefined. */
function match(pattern: string, path: string): Readonly<Record<string, string>> | undefined {
  if (pattern.endsWith('/')) {
    return path.startsWith(pattern) || path === pattern.slice(0, -1) ? {} : undefined;
  }
  const expected = pattern.split('/');
  const actual = path.split('/');
  if (expected.length !== actual.length) return undefined;
  const params: Record<string, string> = {};
  for (const [index, segment] of expected.entries()) {
    const value = actual[index] ?? '';
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
