import type { Duplex } from 'node:stream';
import { writeAll } from '../../lib/index.ts';
import {
  forwardedHeaders,
  type RelayOptions,
  serveWebSocket,
  tunnelUpgrade,
  type WebSocketSession,
} from '../../protocols/upgrade/index.ts';
import { handshakeProblem } from '../../protocols/websocket/index.ts';
import { type Response, text, type UpgradeCall } from '../router.ts';
import type { DialUpgrade, UpgradeResponse } from './dial-upgrade.ts';
import { portForwardProtocol, spdyUpgradeHeaders } from './remote-command.ts';

/** `idleMs` is the maximum idle time of a stream. */
export interface TunnelDeps extends RelayOptions {
  readonly dial: DialUpgrade;
}

/**
 * Forwards the client's upgrade to the runtime and copies the bytes of both connections. When the
 * runtime does not respond with 101, the client gets an error response and both connections are
 * closed.
 */
export async function tunnel(
  call: UpgradeCall,
  url: URL,
  deps: TunnelDeps,
  signal: AbortSignal,
): Promise<Response | undefined> {
  const headers = [...forwardedHeaders(call.rawHeaders), ...forwardedFor(call.socket)];
  const response = await deps.dial({ url, method: call.request.method, headers }, signal);
  if (response.kind === 'answered') return refusal(response);
  await tunnelUpgrade(call, response, deps, signal);
  return undefined;
}

function forwardedFor(socket: Duplex): readonly string[] {
  const { remoteAddress } = socket as { readonly remoteAddress?: string };
  return remoteAddress === undefined ? [] : ['X-Forwarded-For', remoteAddress];
}

/**
 * Converts the runtime's response to a failed upgrade: errors are passed to the client, any other
 * response, such as a redirect, becomes a 500.
 */
export function refusal({
  status,
  contentType,
  body,
}: Extract<UpgradeResponse, { kind: 'answered' }>): Response {
  if (status >= 400 && status <= 599) return { status, contentType, body };
  return text(500, `invalid upgrade response: status code ${status}`);
}

/** The response to an invalid WebSocket handshake. */
export function handshakeRefusal({ request }: Pick<UpgradeCall, 'request'>): Response | undefined {
  const problem = handshakeProblem(request);
  if (problem === undefined) return undefined;
  const { status, message, headers } = problem;
  return { ...text(status, message), ...(headers === undefined ? {} : { headers }) };
}

/** SPDY port forwarding in WebSocket messages, for proxies that support only WebSockets. */
export const tunnelProtocol = `SPDY/3.1+${portForwardProtocol}`;

/** Tunnels port forwarding: copies the bytes of WebSocket messages to the runtime and back. */
export async function tunnelPortForward(
  call: UpgradeCall,
  url: URL,
  deps: TunnelDeps,
  signal: AbortSignal,
): Promise<Response | undefined> {
  const problem = handshakeRefusal(call);
  if (problem !== undefined) return problem;
  const headers = spdyUpgradeHeaders(portForwardProtocol);
  const response = await deps.dial({ url, method: 'POST', headers }, signal);
  if (response.kind === 'answered') return refusal(response);
  const { socket, head } = response;
  try {
    await serveWebSocket(
      { ...call, headers: call.request.headers },
      tunnelProtocol,
      deps,
      (session) => carry(session, socket, head),
      signal,
    );
  } finally {
    socket.destroy();
  }
  return undefined;
}

async function carry(session: WebSocketSession, runtime: Duplex, head: Uint8Array): Promise<void> {
  const left = toRuntime(session, runtime);
  const ended = toClient(session, runtime, head);
  left.catch(() => {});
  ended.catch(() => {});
  await Promise.race([left, ended]);
}

async function toRuntime({ connection, signal, touch }: WebSocketSession, runtime: Duplex): Promise<void> {
  for await (const { bytes } of connection.messages()) {
    touch();
    if (bytes.length > 0) await writeAll(runtime, bytes, signal);
  }
}

async function toClient(
  { connection, signal, touch }: WebSocketSession,
  runtime: Duplex,
  head: Uint8Array,
): Promise<void> {
  if (head.length > 0) await connection.send(signal, head);
  for await (const chunk of runtime as AsyncIterable<Buffer>) {
    touch();
    await connection.send(signal, chunk);
  }
}
