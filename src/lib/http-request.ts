import type http from 'node:http';
import type { IncomingMessage } from 'node:http';
import { request as tlsRequest } from 'node:https';
import { isIP } from 'node:net';
import { onAbort } from './abort.ts';
import { describeError, KubelingError } from './errors.ts';

/** One GET request, ready to be sent. */
export interface HttpRequest {
  readonly scheme: 'http' | 'https';
  /** A name or an address, without brackets. */
  readonly host: string;
  readonly port: number;
  /** The path with its query, as it goes over the wire. */
  readonly target: string;
  /** A name may come more than once; a `Host` replaces the one of the address. */
  readonly headers: readonly (readonly [name: string, value: string])[];
}

export interface HttpResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** At most as much as was asked for. */
  readonly body: Buffer;
}

/**
 * Sends the request over a connection of its own and answers whatever comes back, redirects too. Nobody's certificate
 * is checked. Rejects when there is no answer: with HTTP_NOT_TLS when whoever was to speak TLS speaks something else,
 * with HTTP_CUT_OFF when the answer ends in its middle.
 */
export type SendHttp = (
  request: HttpRequest,
  bodyLimit: number,
  signal: AbortSignal,
) => Promise<HttpResponse>;

/** Over the machine's network. */
export const sendHttp: SendHttp = (request, bodyLimit, signal) =>
  new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const asked = open(request);
    const link = onAbort(signal, (reason) => asked.destroy(reason as Error));
    const fail = (error: unknown) => {
      link[Symbol.dispose]();
      reject(isNotTls(error) ? notTls(request, error) : error);
    };
    const failMidway = (error: unknown) => fail(signal.aborted ? error : cutOff(request, error));
    asked.on('error', fail);
    asked.on('response', (response) => {
      asked.off('error', fail).on('error', failMidway);
      readStart(response, bodyLimit)
        .then((body) => {
          link[Symbol.dispose]();
          resolve({ status: response.statusCode ?? 0, headers: response.headers, body });
        })
        .catch(failMidway)
        .finally(() => asked.destroy());
    });
    asked.end();
  });

const maxHeaderBytes = 1 << 20;

function open({ scheme, host, port, target, headers }: HttpRequest) {
  const options = {
    method: 'GET',
    host,
    port,
    path: target,
    headers: grouped(headers),
    agent: false,
    // Much in containers that answers probes is a line of shell: bare line feeds and the like are no failure. Nothing
    // else comes over this connection, so nothing can be smuggled past it.
    insecureHTTPParser: true,
    maxHeaderSize: maxHeaderBytes,
  } as const;
  if (scheme === 'http') return nodeHttp.request(options);
  return tlsRequest({ ...options, rejectUnauthorized: false, servername: isIP(host) === 0 ? host : '' });
}

/** Larger requests are rejected: every server rejects them too, and a probe sends them again and again. */
const maxRequestHeaderBytes = 65_536;

/** These would turn the request into something else than one GET: an upgrade, or another request in its body. */
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
      `Cannot send a request as its headers must have at most ${maxRequestHeaderBytes} bytes: they have ${bytes}`,
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

/** As OpenSSL takes the first bytes of an answer in plain text, by its version. */
const plainAnswer = /wrong.version.number|packet.length.too.long|http.request/i;

function isNotTls(error: unknown): boolean {
  const { code, message } = error as { readonly code?: unknown; readonly message?: unknown };
  return /^(?:EPROTO|ERR_SSL_\w+)$/.test(String(code)) && plainAnswer.test(`${code} ${message}`);
}

function notTls({ host, port }: HttpRequest, cause: unknown): KubelingError {
  return new KubelingError('HTTP_NOT_TLS', `The server at ${joinHostPort(host, port)} does not speak TLS`, {
    cause,
  });
}

function cutOff({ host, port }: HttpRequest, cause: unknown): KubelingError {
  const message = `The server at ${joinHostPort(host, port)} ended its answer in the middle: ${describeError(cause)}`;
  return new KubelingError('HTTP_CUT_OFF', message, { cause });
}

export function joinHostPort(host: string, port: number): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

/** What goes over the wire of a path as people write it: it may carry a query, and lack what a URL must have. */
export function requestTarget(path: string): string {
  const [plain = ''] = path.split('#', 1);
  const rest = plain.replace(/^(?:[a-z][a-z\d+.-]*:)?\/\/[^/?]*/i, '');
  const whole = rest.startsWith('/') ? rest : `/${rest}`;
  // What is no escape is meant as it stands, and then so is everything else.
  const literal = /%(?![\da-f]{2})/i.test(whole.split('?', 1)[0] ?? '')
    ? whole.replaceAll('%', '%25').replaceAll('?', '%3F')
    : whole;
  return literal.replace(/[^\x21-\x7e]/gu, encodeURIComponent);
}

export type FollowedResponse =
  | { readonly kind: 'answered'; readonly reply: HttpResponse }
  /** The answer leads to another host, where nobody was told to ask. */
  | { readonly kind: 'leads-away'; readonly reply: HttpResponse };

const redirects: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
const maxRequests = 10;

/** Follows redirects as long as they stay with the host that was asked. */
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
    // A host of the caller's own choice stands for as long as nobody names another one.
    headers: URL.canParse(location) ? headers.filter(([name]) => name.toLowerCase() !== 'host') : headers,
  };
}

/**
 * Node's HTTP. Not imported as other modules are: an import loads all that a module offers, and this one offers a whole
 * second HTTP client, which nobody here uses and which takes megabytes.
 */
export const nodeHttp: typeof http = process.getBuiltinModule('node:http');
