import { once } from 'node:events';
import type { IncomingHttpHeaders } from 'node:http';
import type { Duplex } from 'node:stream';
import {
  abortable,
  type Clock,
  cancelledError,
  KubelingError,
  LinkedController,
  type Timer,
  withDeadline,
} from '../../lib/index.ts';
import { acceptHeaders, closeCodes, WebSocketConnection } from '../websocket/index.ts';
import { switchingProtocolsHead } from './headers.ts';
import { IdleTimer } from './idle-timer.ts';
import type { RelayOptions } from './relay.ts';
import type { UpgradingClient } from './tunnel.ts';

/** A WebSocket of a client while it is served. */
export interface WebSocketSession {
  readonly connection: WebSocketConnection;
  /** Aborted when the client has disconnected, was idle for too long, or the server closes. */
  readonly signal: AbortSignal;
  /**
   * Restarts the idle timeout. Must be called whenever data is transferred; pings do not count as
   * activity.
   */
  touch(): void;
}

const pingEveryMs = 5_000;
const leaveWithinMs = 5_000;

/**
 * Accepts the client's WebSocket and serves it until the handler has ended or is aborted, then
 * closes it.
 */
export async function serveWebSocket(
  { headers, socket, head }: UpgradingClient & { readonly headers: IncomingHttpHeaders },
  protocol: string,
  { clock, idleMs }: RelayOptions,
  work: (session: WebSocketSession) => Promise<void>,
  parent: AbortSignal,
): Promise<void> {
  socket.write(switchingProtocolsHead(acceptHeaders(headers, protocol)));
  using session = new LinkedController(parent);
  using idle = new IdleTimer(clock, idleMs, () =>
    session.abort(new KubelingError('DEADLINE_EXCEEDED', `The connection was idle for ${idleMs} ms`)),
  );
  const gone = () => session.abort(cancelledError('The client disconnected'));
  socket.once('close', gone);
  const connection = new WebSocketConnection(socket, head);
  using _pings = every(clock, pingEveryMs, () => connection.ping());
  try {
    const { signal } = session;
    await abortable(work({ connection, signal, touch: () => idle.touch() }), signal);
    connection.close();
  } catch (error) {
    connection.close(closeCodes.failed);
    if (!session.signal.aborted) throw error;
  } finally {
    socket.off('close', gone);
    session.abort(cancelledError('The session is over'));
    await closeGracefully(socket, clock);
  }
}

/**
 * Waits until the client has read the last bytes and closed the connection; its further input is
 * discarded.
 */
async function closeGracefully(socket: Duplex, clock: Clock): Promise<void> {
  if (socket.destroyed) return;
  socket.resume();
  const never = new AbortController().signal;
  const closed = (signal: AbortSignal) => once(socket, 'close', { signal });
  await withDeadline(
    { clock, ms: leaveWithinMs, what: 'wait for the client to disconnect' },
    closed,
    never,
  ).catch(() => {});
}

function every(clock: Clock, ms: number, run: () => void): Disposable {
  let timer: Timer;
  const arm = () => {
    timer = clock.timer(ms, () => {
      run();
      arm();
    });
  };
  arm();
  return { [Symbol.dispose]: () => timer.cancel() };
}
