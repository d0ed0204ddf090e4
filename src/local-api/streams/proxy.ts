import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { request as tlsRequest } from 'node:https';
import { pipeline } from 'node:stream/promises';
import { describeError, nodeHttp } from '../../lib/index.ts';
import {
  type BackendResponse,
  forwardedHeaders,
  headerPairs,
  tunnelUpgrade,
} from '../../protocols/upgrade/index.ts';
import { forwardUpgrade, type Upgrade } from './commands.ts';
import type { StreamCall, StreamsDeps } from './deps.ts';
import { requestKubelet, sendToBackend } from './kubelet-dialer.ts';
import { type ProxyTarget, proxyTarget } from './proxy-target.ts';
import { unavailable } from './refusals.ts';

/** Hop-by-hop headers, which are not forwarded. */
const hopByHop = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'te',
  'trailer',
  'transfer-encoding',
]);

/** Forwards a request to a node, pod or service without the credentials of the client. */
export async function answerProxy(
  call: StreamCall,
  response: ServerResponse,
  deps: StreamsDeps,
  signal: AbortSignal,
): Promise<number> {
  const target = proxyTarget(call, deps);
  const answer = await sendProxied(target, call, deps, signal);
  if (answer.kind === 'upgraded') {
    answer.socket.destroy();
    throw unavailable('the backend responded with an upgrade that was not requested');
  }
  const { statusCode = 502, rawHeaders } = answer.response;
  const forwarded = headerPairs(rawHeaders).filter(([name]) => !hopByHop.has(name.toLowerCase()));
  response.writeHead(statusCode, forwarded.flat());
  await pipeline(answer.response, response, { signal }).catch(() => answer.response.destroy());
  return statusCode;
}

/** Forwards an upgrade request to the target of the proxy. */
export async function upgradeProxy(
  call: StreamCall,
  upgrade: Upgrade,
  deps: StreamsDeps,
  signal: AbortSignal,
): Promise<number> {
  const target = proxyTarget(call, deps);
  const path = proxiedPath(call);
  if (target.kind === 'kubelet')
    return await forwardUpgrade({ address: target.address, path }, upgrade, deps, signal);
  const response = await sendProxied(target, call, deps, signal);
  if (response.kind === 'answered') {
    response.response.destroy();
    throw unavailable(`the upgrade was rejected with ${response.response.statusCode}`);
  }
  await tunnelUpgrade(upgrade, response, { clock: deps.clock, idleMs: 0 }, signal);
  return 101;
}

async function sendProxied(
  target: ProxyTarget,
  call: StreamCall,
  { kubelet, clock }: StreamsDeps,
  signal: AbortSignal,
): Promise<BackendResponse> {
  const { incoming: request } = call;
  const { method = 'GET' } = request;
  const path = proxiedPath(call);
  const headers = [...forwardedHeaders(request.rawHeaders), ...bodyHeaders(request)];
  const body = hasBody(request) ? request : undefined;
  if (target.kind === 'kubelet')
    return await requestKubelet(target.address, kubelet, { method, path, headers, body }, clock, signal);
  const { scheme, host, port } = target;
  const authority = `${host.includes(':') ? `[${host}]` : host}${port === undefined ? '' : `:${port}`}`;
  const wire = {
    method,
    host,
    port,
    path,
    headers: ['Host', authority, ...headers] as unknown as OutgoingHttpHeaders,
    agent: false,
  } as const;
  try {
    // Pods with HTTPS use self-signed certificates, which cannot be verified.
    const requested =
      scheme === 'https' ? tlsRequest({ ...wire, rejectUnauthorized: false }) : nodeHttp.request(wire);
    return await sendToBackend(requested, { body }, clock, signal);
  } catch (error) {
    signal.throwIfAborted();
    throw unavailable(`error trying to reach service: ${describeError(error)}`);
  }
}

/** The path of the proxy request after `/proxy`, with the query. */
function proxiedPath({ rest, incoming }: Pick<StreamCall, 'rest' | 'incoming'>): string {
  const { url = '/' } = incoming;
  const query = url.includes('?') ? url.slice(url.indexOf('?')) : '';
  return `${rest === '' ? '/' : rest}${query}`;
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

function bodyHeaders({ headers, method = 'GET' }: IncomingMessage): readonly string[] {
  if (headers['transfer-encoding'] !== undefined) return ['Transfer-Encoding', 'chunked'];
  const length = headers['content-length'];
  if (length !== undefined) return ['Content-Length', length];
  return ['GET', 'HEAD', 'DELETE', 'OPTIONS'].includes(method) ? [] : ['Content-Length', '0'];
}
