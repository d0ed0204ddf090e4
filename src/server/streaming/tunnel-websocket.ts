import type { Duplex } from 'node:stream';
import { writeAll } from '../../lib/index.ts';
import { serveWebSocket, type WebSocketSession } from '../../protocols/upgrade/index.ts';
import type { Response, UpgradeCall } from '../router.ts';
import { portForwardProtocol, spdyUpgradeHeaders } from './remote-command.ts';
import { handshakeRefusal, refusal, type TunnelDeps } from './tunnel.ts';

/** SPDY for port forwarding, carried in the messages of a WebSocket: for ways on which only those pass. */
export const tunnelProtocol = `SPDY/3.1+${portForwardProtocol}`;

/** Takes the messages' bytes for what goes to the runtime, and the other way round. */
export async function tunnelPortForward(
  call: UpgradeCall,
  url: URL,
  deps: TunnelDeps,
  signal: AbortSignal,
): Promise<Response | undefined> {
  const problem = handshakeRefusal(call);
  if (problem !== undefined) return problem;
  const headers = spdyUpgradeHeaders(portForwardProtocol);
  const answer = await deps.dial({ url, method: 'POST', headers }, signal);
  if (answer.kind === 'answered') return refusal(answer);
  const { socket, head } = answer;
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
