import type { IncomingMessage, Server } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { TLSSocket } from 'node:tls';
import type { ApiUser } from '../api/index.ts';
import type { ClientCertificate, ClientInfo } from './server-deps.ts';

/** Tracks all connections of the server and their client certificates. */
export class Connections {
  /** node:http tracks neither connections in the TLS handshake nor upgraded ones. */
  readonly #open = new Set<Socket>();
  readonly #upgraded = new Set<Duplex>();
  readonly #certificates = new WeakMap<TLSSocket, ClientCertificate>();
  readonly #limiter: ConnectionLimiter;

  constructor(limits: ConnectionQuota) {
    this.#limiter = new ConnectionLimiter(limits);
  }

  track(server: Server): void {
    server.on('connection', (socket: Socket) => {
      this.#open.add(socket);
      this.#limiter.add(socket);
      socket.once('close', () => this.#open.delete(socket));
    });
    // As with plain HTTP, each direction of an upgraded connection ends separately. Set only after
    // the handshake, because a client that disconnects during it would otherwise be waited for.
    server.on('secureConnection', (socket: TLSSocket) => {
      socket.allowHalfOpen = true;
    });
  }

  /** Records the user of a request on the connection. */
  authenticated({ socket }: IncomingMessage, user: ApiUser): void {
    this.#limiter.authenticated(socket, user);
  }

  trackUpgraded(socket: Duplex): void {
    this.#upgraded.add(socket);
    socket.once('close', () => this.#upgraded.delete(socket));
  }

  closeUpgraded(): void {
    for (const socket of this.#upgraded) socket.destroy();
  }

  destroyAll(): void {
    for (const socket of this.#open) socket.destroy();
  }

  clientInfoOf({ socket, headers }: IncomingMessage): ClientInfo {
    return { certificate: this.#certificateOf(socket), headers, address: socket.remoteAddress };
  }

  #certificateOf(socket: Socket): ClientCertificate | undefined {
    if (!(socket instanceof TLSSocket)) return undefined;
    const known = this.#certificates.get(socket);
    if (known !== undefined) return known;
    const certificate = socket.getPeerX509Certificate();
    if (certificate === undefined) return undefined;
    const untrusted = socket.authorized ? undefined : String(socket.authorizationError ?? 'not verified');
    const shown = { certificate, untrusted };
    this.#certificates.set(socket, shown);
    return shown;
  }
}

/** The maximum number of connections of unauthenticated and of unprivileged clients. */
export interface ConnectionQuota {
  readonly anonymous: number;
  readonly unprivileged: number;
}

/** In ascending order: a connection has the highest class of the users of its requests. */
const ranks = ['anonymous', 'unprivileged', 'trusted'] as const;
type Rank = (typeof ranks)[number];

/**
 * Accepts every new connection and closes the oldest one of its class above the limit: a client
 * that holds connections cannot lock out others. Connections of nodes and administrators are not
 * limited.
 */
export class ConnectionLimiter {
  readonly #limits: ConnectionQuota;
  /** By remote address and port, in the order of connection. */
  readonly #pools: Readonly<Record<Rank, Map<string, Socket>>> = {
    anonymous: new Map(),
    unprivileged: new Map(),
    trusted: new Map(),
  };

  constructor(limits: ConnectionQuota) {
    this.#limits = limits;
  }

  add(socket: Socket): void {
    const place = remoteEndpoint(socket);
    if (place === undefined) return;
    this.#insert('anonymous', place, socket);
    socket.once('close', () => {
      for (const rank of ranks) this.#pools[rank].delete(place);
    });
  }

  /** Promotes the connection to the class of the user. */
  authenticated(connection: Pick<Socket, 'remoteAddress' | 'remotePort'>, user: ApiUser): void {
    const place = remoteEndpoint(connection) ?? '';
    const before = ranks.find((rank) => this.#pools[rank].has(place));
    const now = rankOf(user);
    if (before === undefined || ranks.indexOf(now) <= ranks.indexOf(before)) return;
    const socket = this.#pools[before].get(place);
    this.#pools[before].delete(place);
    if (socket !== undefined) this.#insert(now, place, socket);
  }

  #insert(rank: Rank, place: string, socket: Socket): void {
    const pool = this.#pools[rank];
    pool.set(place, socket);
    const most = rank === 'trusted' ? Number.POSITIVE_INFINITY : this.#limits[rank];
    const [oldest] = pool.size > most ? pool : [];
    if (oldest === undefined) return;
    pool.delete(oldest[0]);
    oldest[1].destroy();
  }
}

function rankOf({ groups }: ApiUser): Rank {
  if (groups.includes('system:masters') || groups.includes('system:nodes')) return 'trusted';
  return groups.includes('system:unauthenticated') ? 'anonymous' : 'unprivileged';
}

/** Unique among open connections. */
function remoteEndpoint({
  remoteAddress,
  remotePort,
}: Pick<Socket, 'remoteAddress' | 'remotePort'>): string | undefined {
  return remotePort === undefined ? undefined : `${remoteAddress} ${remotePort}`;
}
