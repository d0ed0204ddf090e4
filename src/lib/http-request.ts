import type http from 'node:http';
import type { IncomingMessage } from 'node:http';
import { request as tlsRequest } from 'node:https';
import { isIP } from 'node:net';
import { onAbort } from './abort.ts';
import { describeError, KubelingError } from './errors.ts';

/** An HTTP GET request, such as that of a probe. */
export interface HttpRequest {
  readonly scheme: 'http' | 'https';
  /** The host name or IP address; an IPv6 address without brackets. */
  readonly host: string;
  readonly port: number;
  /** The request target: path and query as sent. */
  readonly target: string;
  /**
   * The request headers; a name may occur more than once. `Host` replaces the default Host header.
   */
  readonly headers: readonly (readonly [name: string, value: string])[];
}

export interface HttpResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** The response body, truncated at the requested limit. */
  readonly body: Buffer;
}

/**
 * Sends the request over its own connection and returns any response, including redirects.
 * Certificates are not verified. Rejects without a response: with HTTP_NOT_TLS when the server of a
 * TLS request does not use TLS, with HTTP_CUT_OFF when the response ends early.
 */
export type SendHttp = (
  request: HttpRequest,
  bodyLimit: number,
  signal: AbortSignal,
) => Promise<HttpResponse>;

/** Sends HTTP requests over the network of the node. */
export const sendHttp: SendHttp = (request, bodyLimit, signal) =>
  new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const attempt = open(request);
    const link = onAbort(signal, (reason) => attempt.destroy(reason as Error));
    const fail = (error: unknown) => {
      link[Symbol.dispose]();
      reject(isNotTls(error) ? notTls(request, error) : error);
    };
    const failMidway = (error: unknown) => fail(signal.aborted ? error : cutOff(request, error));
    attempt.on('error', fail);
    let informational = 0;
    attempt.on('information', () => {
      if (++informational > maxInformational) attempt.destroy(tooManyInformational(request));
    });
    attempt.on('response', (response) => {
      attempt.off('error', fail).on('error', failMidway);
      readStart(response, bodyLimit)
        .then((body) => {
          link[Symbol.dispose]();
          resolve({ status: response.statusCode ?? 0, headers: response.headers, body });
        })
        .catch(failMidway)
        .finally(() => attempt.destroy());
    });
    attempt.end();
  });

const maxHeaderBytes = 1 << 20;
/**
 * The maximum number of 1xx responses before the final one, because a server may send any number.
 */
const maxInformational = 16;

function open({ scheme, host, port, target, headers }: HttpRequest) {
  const options = {
    method: 'GET',
    host,
    port,
    path: target,
    headers: grouped(headers),
    agent: false,
    // Many probe handlers in containers are shell one-liners, so bare line feeds and similar
    // violations of HTTP are tolerated. No other request uses this connection, so no request can be
    // smuggled.
    insecureHTTPParser: true,
    maxHeaderSize: maxHeaderBytes,
  } as const;
  if (scheme === 'http') return nodeHttp.request(options);
  return tlsRequest({ ...options, rejectUnauthorized: false, servername: isIP(host) === 0 ? host : '' });
}

/**
 * The maximum size of the request headers. Servers reject larger headers, and a probe would send
 * them again and again.
 */
const maxRequestHeaderBytes = 65_536;

/**
 * These headers are removed: they would turn the request into an upgrade or into a request with a
 * body.
 */
const droppedHeaders: ReadonlySet<string> = new Set([
  'connection',
  'upgrade',
  'content-length',
  'transfer-encoding',
  'te',
  'trailer',
  'keep-alive',
  'proxy-connection',
]);

function grouped(headers: HttpRequest['headers']): Record<string, string | string[]> {
  const bytes = headers.reduce((sum, [name, value]) => sum + name.length + value.length + 4, 0);
  if (bytes > maxRequestHeaderBytes)
    throw new KubelingError(
      'HTTP_HEADERS_TOO_LARGE',
      `Cannot send a request because its headers have ${bytes} bytes: at most ${maxRequestHeaderBytes} are allowed`,
    );
  const all = new Map<string, string[]>();
  for (const [name, value] of headers) {
    const key = name.toLowerCase();
    if (droppedHeaders.has(key)) continue;
    const values = all.get(key);
    if (values === undefined) all.set(key, [value]);
    else values.push(value);
  }
  return Object.fromEntries(
    [...all].map(([key, values]) => [key, key === 'host' ? (values[0] ?? '') : values]),
  );
}

async function readStart(response: IncomingMessage, limit: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    size += chunk.byteLength;
    if (size >= limit) break;
  }
  return Buffer.concat(chunks).subarray(0, limit);
}

/** The OpenSSL error codes of a plain-text response, which depend on the version. */
const plainResponse = /wrong.version.number|packet.length.too.long|http.request/i;

function isNotTls(error: unknown): boolean {
  const { code, message } = error as { readonly code?: unknown; readonly message?: unknown };
  return /^(?:EPROTO|ERR_SSL_\w+)$/.test(String(code)) && plainResponse.test(`${code} ${message}`);
}

function notTls({ host, port }: HttpRequest, cause: unknown): KubelingError {
  return new KubelingError('HTTP_NOT_TLS', `The server at ${joinHostPort(host, port)} does not speak TLS`, {
    cause,
  });
}

function tooManyInformational({ host, port }: HttpRequest): KubelingError {
  const server = joinHostPort(host, port);
  const message = `The server at ${server} sent more than ${maxInformational} informational responses (1xx)`;
  return new KubelingError('HTTP_INFORMATIONAL', message);
}

function cutOff({ host, port }: HttpRequest, cause: unknown): KubelingError {
  const message = `The server at ${joinHostPort(host, port)} ended its answer in the middle: ${describeError(cause)}`;
  return new KubelingError('HTTP_CUT_OFF', message, { cause });
}

export function joinHostPort(host: string, port: number): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

/**
 * The request target for a path as users write it: the path may contain a query, and characters
 * that a URL must escape.
 */
export function requestTarget(path: string): string {
  const [plain = ''] = path.split('#', 1);
  const rest = plain.replace(/^(?:[a-z][a-z\d+.-]*:)?\/\/[^/?]*/i, '');
  const pathPart = rest.startsWith('/') ? rest : `/${rest}`;
  // If the path has an invalid escape, every % and ? in it is a literal character.
  const literal = /%(?![\da-f]{2})/i.test(pathPart.split('?', 1)[0] ?? '')
    ? pathPart.replaceAll('%', '%25').replaceAll('?', '%3F')
    : pathPart;
  return literal.replace(/[^\x21-\x7e]/gu, encodeURIComponent);
}

export type FollowedResponse =
  | { readonly kind: 'answered'; readonly reply: HttpResponse }
  /** The response is a redirect to another host, which is not followed. */
  | { readonly kind: 'leads-away'; readonly reply: HttpResponse };

const redirects: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
const maxRequests = 10;

/** Sends the request and follows redirects to the same host. */
export async function followRedirects(
  dial: SendHttp,
  first: HttpRequest,
  bodyLimit: number,
  signal: AbortSignal,
): Promise<FollowedResponse> {
  let request = first;
  for (let requests = 1; requests <= maxRequests; requests++) {
    const reply = await dial(request, bodyLimit, signal);
    const location = reply.headers['location'];
    if (!redirects.has(reply.status) || typeof location !== 'string') return { kind: 'answered', reply };
    const next = redirected(request, location);
    if (next.host.toLowerCase() !== first.host.toLowerCase()) return { kind: 'leads-away', reply };
    request = next;
  }
  throw new KubelingError('HTTP_REDIRECTS', `stopped after ${maxRequests} redirects`);
}

function redirected(request: HttpRequest, location: string): HttpRequest {
  const { scheme, host, port, target, headers } = request;
  const at = new URL(location, `${scheme}://${joinHostPort(host, port)}${target}`);
  const next = at.protocol === 'https:' ? 'https' : 'http';
  return {
    ...request,
    scheme: next,
    host: at.hostname.replace(/^\[(.*)\]$/, '$1'),
    port: Number(at.port) || (next === 'https' ? 443 : 80),
    target: `${at.pathname}${at.search}`,
    // A Host header of the caller is kept only for redirects to a path; a full URL names its own
    // host.
    headers: URL.canParse(location) ? headers.filter(([name]) => name.toLowerCase() !== 'host') : headers,
  };
}

/**
 * Loads the HTTP module of Node.js. A static import would load all its exports, among them a second
 * HTTP client of several megabytes that is not used.
 */
export const nodeHttp: typeof http = process.getBuiltinModule('node:http');
