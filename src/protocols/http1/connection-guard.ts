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
/**
 * The maximum total number of connections; those above the limits for anonymous and unprivileged
 * clients are reserved for trusted clients.
 */
const maxConnections = 4_096;

/**
 * The maximum size of the request target and all headers. exec sends its command in the query: a
 * client with a valid certificate may send a complete command line, other clients at most the
 * longest single argument of a program on Linux.
 */
export const maxHeaderBytes = { withCertificate: 1 << 20, others: 128 * 1024 } as const;

/**
 * The maximum number of unanswered requests on a connection; Kubernetes clients do not pipeline.
 */
const maxUnanswered = 8;
const requestsPerTurn = 16;

/** Options of all HTTP servers. */
export const guardedServerOptions = {
  maxHeaderSize: maxHeaderBytes.others,
  headersTimeout: 10_000,
  /**
   * The time limit for receiving a complete request; longer uploads have their own deadlines, and
   * responses are not limited.
   */
  requestTimeout: 300_000,
  connectionsCheckingInterval: 5_000,
  /** TCP keepalive detects disconnected clients on idle connections. */
  keepAlive: true,
  keepAliveInitialDelay: 30_000,
} as const satisfies ServerOptions;

/** Calls back once, when the response was sent or its connection was closed. */
export type OnEnd = (callback: () => void) => void;

/**
 * Bounds the connections, memory and time that unauthenticated and unprivileged clients can use of
 * a server.
 */
export class ConnectionGuard {
  readonly #limiter: ConnectionLimiter;
  readonly #turns = new TurnLimiter(requestsPerTurn);
  /** The callbacks for the end of each unanswered request, by connection. */
  readonly #unanswered = new WeakMap<Socket, Set<() => void>>();

  constructor(quota: Partial<ConnectionQuota> = {}) {
    this.#limiter = new ConnectionLimiter({ ...defaultQuota, ...quota });
  }

  /**
   * Guards the connections of a server. Must be called before the server listens, and after all
   * other listeners for its connections were added.
   */
  track(server: Server): void {
    server.maxConnections = maxConnections;
    server.prependListener('connection', (socket: Socket) => this.#limiter.add(socket));
    // Node.js reads the limit of the header size when it starts to read a connection, right after
    // the call of this listener.
    server.prependListener('secureConnection', (socket: TLSSocket) => {
      const limited = server as Server & { maxHeaderSize: number };
      limited.maxHeaderSize = socket.authorized ? maxHeaderBytes.withCertificate : maxHeaderBytes.others;
      if (socket.authorized) this.#limiter.promote(socket, 'unprivileged');
    });
  }

  /**
   * Raises the class of a request's connection. Must be called after the client was authenticated.
   */
  authenticated(connection: RemoteEnd, caller: ConnectionClass): void {
    this.#limiter.promote(connection, caller);
  }

  /** Whether no client has been authenticated on the connection. */
  isAnonymous(connection: RemoteEnd): boolean {
    return this.#limiter.classOf(connection) === 'anonymous';
  }

  /**
   * Starts to handle a request, possibly in a later turn of the event loop. A connection with too
   * many unanswered requests is closed, and its further requests are not started.
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

  /**
   * Runs the task: immediately for trusted clients, and a limited number per turn of the event loop
   * for all others.
   */
  runLimited(connection: RemoteEnd, task: () => void): void {
    if (this.#limiter.classOf(connection) === 'trusted') task();
    else this.#turns.run(task);
  }

  /**
   * Unanswered requests are tracked by connection, because a response that waits for an earlier one
   * emits no 'close' when the connection is closed.
   */
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
 * Closes the connection and stops the parser, because the current chunk may contain more than a
 * thousand further requests. The parser callback returns 2, which means an upgrade, so that Node.js
 * does not parse the rest as HTTP.
 */
function destroy(socket: Socket): void {
  const { parser } = socket as Socket & { parser?: { onIncoming?: unknown } | null };
  if (typeof parser?.onIncoming === 'function') parser.onIncoming = () => 2;
  socket.destroy();
}
