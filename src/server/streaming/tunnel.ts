import type { Duplex } from 'node:stream';
import type { Clock } from '../../lib/index.ts';
import { bearerProtocol } from '../auth/credentials.ts';
import { type Response, text, type UpgradeCall } from '../router.ts';
import type { DialUpgrade, UpgradeAnswer } from './dial-upgrade.ts';
import { relay } from './relay.ts';

export interface TunnelDeps {
  readonly clock: Clock;
  readonly dial: DialUpgrade;
  /** How long a stream may be silent; 0 for ever. */
  readonly idleMs: number;
}

/**
 * What is the client's business with us alone, and what is written anew. A body would be the beginning of the other
 * protocol to one reader and none of it to the next, so nothing that announces one is passed on.
 */
const keptBack = new Set(['authorization', 'host', 'content-length', 'transfer-encoding', 'cookie']);

/**
 * Passes the client's upgrade on to the runtime byte for byte. Only a switch of protocols opens the way: after any other
 * answer the client gets that answer and both connections are closed, as bytes behind a refused upgrade would reach the
 * runtime with our rights.
 */
export async function tunnel(
  call: UpgradeCall,
  url: URL,
  deps: TunnelDeps,
  signal: AbortSignal,
): Promise<Response | undefined> {
  const headers = passedHeaders(call);
  const answer = await deps.dial({ url, method: call.request.method, headers }, signal);
  if (answer.kind === 'answered') return refusal(answer);
  const { socket } = call;
  socket.write(switchingHead(answer.headers));
  if (answer.head.length > 0) socket.write(answer.head);
  if (call.head.length > 0) answer.socket.write(call.head);
  await relay(socket, answer.socket, deps, signal);
  return undefined;
}

/** Redirects are nobody's to follow: what is no error is made one. */
export function refusal({
  status,
  contentType,
  body,
}: Extract<UpgradeAnswer, { kind: 'answered' }>): Response {
  if (status >= 400 && status <= 599) return { status, contentType, body };
  return text(500, `invalid upgrade response: status code ${status}`);
}

export function switchingHead(headers: readonly string[]): string {
  const lines = pairs(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 101 Switching Protocols\r\n${lines.join('')}\r\n`;
}

function passedHeaders({ rawHeaders, socket }: UpgradeCall): readonly string[] {
  const kept = pairs(rawHeaders).flatMap(([name, value]) => {
    if (keptBack.has(name.toLowerCase())) return [];
    if (name.toLowerCase() === 'sec-websocket-protocol') {
      const plain = withoutBearer(value);
      return plain === '' ? [] : [name, plain];
    }
    return [name, value];
  });
  const from = remoteAddress(socket);
  return from === undefined ? kept : [...kept, 'X-Forwarded-For', from];
}

function withoutBearer(protocols: string): string {
  return protocols
    .split(',')
    .map((each) => each.trim())
    .filter((each) => !each.startsWith(bearerProtocol))
    .join(', ');
}

function remoteAddress(socket: Duplex): string | undefined {
  return (socket as { readonly remoteAddress?: string }).remoteAddress;
}

function pairs(flat: readonly string[]): readonly (readonly [string, string])[] {
  return flat.flatMap((name, index) => (index % 2 === 0 ? [[name, flat[index + 1] ?? ''] as const] : []));
}
