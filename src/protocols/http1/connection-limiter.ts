import type { Socket } from 'node:net';

/** The maximum number of connections of unauthenticated and of unprivileged clients. */
export interface ConnectionQuota {
  readonly anonymous: number;
  readonly unprivileged: number;
}

/**
 * The classes of connections in ascending order: a connection has the highest class of the users of
 * its requests.
 */
const classes = ['anonymous', 'unprivileged', 'trusted'] as const;
export type ConnectionClass = (typeof classes)[number];

/** The socket of a connection, or the TLS socket that uses it. */
export type RemoteEnd = Pick<Socket, 'remoteAddress' | 'remotePort'>;

/**
 * Accepts every new connection; if a class then exceeds its limit, closes the oldest connection of
 * that class, so that a client that holds connections cannot lock out others. Connections of
 * trusted clients are not limited.
 */
export class ConnectionLimiter {
  readonly #limits: ConnectionQuota;
  /**
   * The connections of each class by remote address and port, in the order in which they were
   * opened.
   */
  readonly #pools: Readonly<Record<ConnectionClass, Map<string, Socket>>> = {
    anonymous: new Map(),
    unprivileged: new Map(),
    trusted: new Map(),
  };

  constructor(limits: ConnectionQuota) {
    this.#limits = limits;
  }

  add(socket: Socket): void {
    const endpoint = remoteEndpoint(socket);
    if (endpoint === undefined) return;
    this.#insert('anonymous', endpoint, socket);
    socket.once('close', () => {
      for (const each of classes) this.#pools[each].delete(endpoint);
    });
  }

  /** Raises the class of a connection; it is never lowered. */
  promote(connection: RemoteEnd, to: ConnectionClass): void {
    const endpoint = remoteEndpoint(connection) ?? '';
    const from = classes.find((each) => this.#pools[each].has(endpoint));
    if (from === undefined || classes.indexOf(to) <= classes.indexOf(from)) return;
    const socket = this.#pools[from].get(endpoint);
    this.#pools[from].delete(endpoint);
    if (socket !== undefined) this.#insert(to, endpoint, socket);
  }

  /** The class of a connection; a closed one counts as anonymous. */
  classOf(connection: RemoteEnd): ConnectionClass {
    const endpoint = remoteEndpoint(connection) ?? '';
    return classes.find((each) => this.#pools[each].has(endpoint)) ?? 'anonymous';
  }

  #insert(into: ConnectionClass, endpoint: string, socket: Socket): void {
    const pool = this.#pools[into];
    pool.set(endpoint, socket);
    const limit = into === 'trusted' ? Number.POSITIVE_INFINITY : this.#limits[into];
    const [oldest] = pool.size > limit ? pool : [];
    if (oldest === undefined) return;
    pool.delete(oldest[0]);
    oldest[1].destroy();
  }
}

/** The remote address and port of a connection, unique among open connections. */
function remoteEndpoint({ remoteAddress, remotePort }: RemoteEnd): string | undefined {
  return remotePort === undefined ? undefined : `${remoteAddress} ${remotePort}`;
}
