import type { IncomingHttpHeaders } from 'node:http';
import type { Duplex } from 'node:stream';

/** A connection whose client wants to speak something else than HTTP over it. */
export interface UpgradedClient {
  readonly headers: IncomingHttpHeaders;
  readonly socket: Duplex;
  /** What the client sent right behind its request. */
  readonly head: Uint8Array;
}

/** One message of a WebSocket; resolves when the client can take more. */
export type SendMessage = (kind: 'binary' | 'text', bytes: Uint8Array) => Promise<void>;

/** What is done with raw connections, by who serves them elsewhere too. */
export interface SocketParts {
  /** Passes bytes both ways until both have ended or one is gone; then both are closed. */
  relay(one: Duplex, other: Duplex, signal: AbortSignal): Promise<void>;
  /** What is wrong with the client's wish for a WebSocket, if anything. */
  handshakeProblem(method: string, headers: IncomingHttpHeaders): string | undefined;
  /** Grants it, answers its pings, and closes it when the work is done or the client is gone. */
  serveWebSocket(
    client: UpgradedClient,
    protocol: string,
    work: (send: SendMessage, signal: AbortSignal) => Promise<void>,
    signal: AbortSignal,
  ): Promise<void>;
}
