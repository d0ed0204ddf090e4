import type { IncomingMessage, Server, ServerOptions, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import {
  type ConnectionClass,
  ConnectionLimiter,
  type ConnectionQuota,
  type RemoteEnd,
} from './connection-limiter.ts';
import { TurnLimiter } from './turn-limiter.ts';

const defaultQuota: ConnectionQuota = { anonymous: 512, unprivileged: 1_024 };
/** Above the quotas of all others, so the rest is left to trusted clients. */
const maxConnections = 4_096;

/**
 * The size of the target and all headers. exec sends its command in the query: a client whose certificate is valid may
 * send a whole command line, other clients as much as the longest single argument of a program on Linux.
 */
export const maxHeaderBytes = { withCertificate: 1 << 20, others: 128 * 1024 } as const;

/** Clients of Kubernetes do not pipeline. */
const maxUnanswered = 8;
const requestsPerTurn = 16;

/** Options that all servers have in common. */
export const guardedServerOptions = {
  maxHeaderSize: maxHeaderBytes.others,
  headersTimeout: 10_000,
  /** Limits only the upload of a request: bodies have own deadlines, and responses may take any time. */
  requestTimeout: 300_000,
  connectionsCheckingInterval: 5_000,
  /** Detects disconnected clients on idle connections. */
  keepAlive: true,
  keepAliveInitialDelay: 30_000,
} as const satisfies ServerOptions;

/** Calls back once, when the response was sent or its connection is closed. */
export type OnEnd = (callback: () => void) => void;

/** Bounds the connections, memory and time that unauthenticated and unprivileged clients can take from a server. */
export class ConnectionGuard {
  readonly #limiter: ConnectionLimiter;
  readonly #turns = new TurnLimiter(requestsPerTurn);
  /** What is to be called at the end of each unanswered request. */
  readonly #unanswered = new WeakMap<Socket, Set<() => void>>();

  constructor(quota: Partial<ConnectionQuota> = {}) {
    this.#limiter = new ConnectionLimiter({ ...defaultQuota, ...quota });
  }

  /** Call it before the server listens, after all other listeners for its connections are added. */
  track(server: Server): void {
    server.maxConnections = maxConnections;
    server.prependListener('connection', (socket: Socket) => this.#limiter.add(socket));
    // Node.js reads the limit of the headers when it begins to read a connection, right after this.
    server.prependListener('secureConnection', (socket: TLSSocket) => {
      const limited = server as Server & { maxHeaderSize: number };
      limited.maxHeaderSize = socket.authorized ? maxHeaderBytes.withCertificate : maxHeaderBytes.others;
      if (socket.authorized) this.#limiter.promote(socket, 'unprivileged');
    });
  }

  /** Call it after the caller of a request was authenticated. */
  authenticated(connection: RemoteEnd, caller: ConnectionClass): void {
    this.#limiter.promote(connection, caller);
  }

  /** Whether no caller was authenticated on the connection so far. */
  isAnonymous(connection: RemoteEnd): boolean {
    return this.#limiter.classOf(connection) === 'anonymous';
  }

  /**
   * Starts to answer a request of HTTP/1.1, perhaps in a later turn of the event loop. Not started are requests of a
   * connection that has too many unanswered ones, which is closed.
   */
  serve({ socket }: IncomingMessage, outgoing: ServerResponse, start: (onEnd: OnEnd) => void): void {
    if (socket.destroyed) return;
    const unanswered = this.#unansweredOf(socket);
    if (unanswered.size >= maxUnanswered) {
      destroy(socket);
      return;
    }
    let onEnd = () => {};
    const end = () => {
      if (unanswered.delete(end)) onEnd();
    };
    unanswered.add(end);
    outgoing.once('close', end);
    this.runLimited(socket, () => {
      if (unanswered.has(end)) start((callback) => (onEnd = callback));
    });
  }

  /** Runs the task: immediately for trusted clients, and a few per turn of the event loop for all others. */
  runLimited(connection: RemoteEnd, task: () => void): void {
    if (this.#limiter.classOf(connection) === 'trusted') task();
    else this.#turns.run(task);
  }

  /** Responses that wait for an earlier one of their connection do not emit 'close' with it. */
  #unansweredOf(socket: Socket): Set<() => void> {
    const known = this.#unanswered.get(socket);
    if (known !== undefined) return known;
    const unanswered = new Set<() => void>();
    this.#unanswered.set(socket, unanswered);
    socket.once('close', () => {
      for (const end of unanswered) end();
    });
    return unanswered;
  }
}

/**
 * Closes the connection, and keeps the parser from going through the rest of the chunk it is at, which may contain more
 * than a thousand requests: 2 is what the callback returns for an upgrade, where HTTP ends.
 */
function destroy(socket: Socket): void {
  const { parser } = socket as Socket & { parser?: { onIncoming?: unknown } | null };
  if (typeof parser?.onIncoming === 'function') parser.onIncoming = () => 2;
  socket.destroy();
}
