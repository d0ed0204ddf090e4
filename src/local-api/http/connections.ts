import type { IncomingMessage, Server } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { TLSSocket } from 'node:tls';
import type { ApiUser } from '../api/index.ts';
import type { CallerFacts, PeerCertificate } from './server-deps.ts';

/** All connections of a server, with what their clients showed at the handshake. */
export class Connections {
  /** The server itself knows neither those whose handshake goes on nor those that were upgraded. */
  readonly #open = new Set<Socket>();
  readonly #upgraded = new Set<Duplex>();
  readonly #certificates = new WeakMap<TLSSocket, PeerCertificate>();
  readonly #pools: ConnectionPools;

  constructor(limits: ConnectionLimits) {
    this.#pools = new ConnectionPools(limits);
  }

  watch(server: Server): void {
    server.on('connection', (socket: Socket) => {
      this.#open.add(socket);
      this.#pools.opened(socket);
      socket.once('close', () => this.#open.delete(socket));
    });
    // As plain HTTP has it: each way of an upgraded connection ends by itself. Not before the handshake is over, as who
    // leaves during it would be waited for.
    server.on('secureConnection', (socket: TLSSocket) => {
      socket.allowHalfOpen = true;
    });
  }

  /** A request came over it, of this user. */
  used({ socket }: IncomingMessage, user: ApiUser): void {
    this.#pools.used(socket, user);
  }

  upgraded(socket: Duplex): void {
    this.#upgraded.add(socket);
    socket.once('close', () => this.#upgraded.delete(socket));
  }

  closeUpgraded(): void {
    for (const socket of this.#upgraded) socket.destroy();
  }

  destroyAll(): void {
    for (const socket of this.#open) socket.destroy();
  }

  factsOf({ socket, headers }: IncomingMessage): CallerFacts {
    return { certificate: this.#certificateOf(socket), headers, address: socket.remoteAddress };
  }

  #certificateOf(socket: Socket): PeerCertificate | undefined {
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

/** How many connections there may be of those who have not shown who they are, and of those who may do little. */
export interface ConnectionLimits {
  readonly strangers: number;
  readonly guests: number;
}

/** Lowest first: a connection is what the best of its requests was. */
const ranks = ['stranger', 'guest', 'trusted'] as const;
type Rank = (typeof ranks)[number];

/**
 * Whoever comes is let in, and the oldest of its rank makes room for it: so nobody who holds connections keeps others
 * out, and least of all the node and its administrators, whose connections are counted by nobody.
 */
export class ConnectionPools {
  readonly #limits: ConnectionLimits;
  /** Each by the place it comes from, in the order they came. */
  readonly #pools: Readonly<Record<Rank, Map<string, Socket>>> = {
    stranger: new Map(),
    guest: new Map(),
    trusted: new Map(),
  };

  constructor(limits: ConnectionLimits) {
    this.#limits = limits;
  }

  opened(socket: Socket): void {
    const place = placeOf(socket);
    if (place === undefined) return;
    this.#put('stranger', place, socket);
    socket.once('close', () => {
      for (const rank of ranks) this.#pools[rank].delete(place);
    });
  }

  /** Somebody has asked for something over the connection with this place at its other end. */
  used(connection: Pick<Socket, 'remoteAddress' | 'remotePort'>, user: ApiUser): void {
    const place = placeOf(connection) ?? '';
    const before = ranks.find((rank) => this.#pools[rank].has(place));
    const now = rankOf(user);
    if (before === undefined || ranks.indexOf(now) <= ranks.indexOf(before)) return;
    const socket = this.#pools[before].get(place);
    this.#pools[before].delete(place);
    if (socket !== undefined) this.#put(now, place, socket);
  }

  #put(rank: Rank, place: string, socket: Socket): void {
    const pool = this.#pools[rank];
    pool.set(place, socket);
    const most = rank === 'trusted' ? Number.POSITIVE_INFINITY : this.#limits[`${rank}s`];
    const [oldest] = pool.size > most ? pool : [];
    if (oldest === undefined) return;
    pool.delete(oldest[0]);
    oldest[1].destroy();
  }
}

function rankOf({ groups }: ApiUser): Rank {
  if (groups.includes('system:masters') || groups.includes('system:nodes')) return 'trusted';
  return groups.includes('system:unauthenticated') ? 'stranger' : 'guest';
}

/** Of no two open connections it is the same. */
function placeOf({
  remoteAddress,
  remotePort,
}: Pick<Socket, 'remoteAddress' | 'remotePort'>): string | undefined {
  return remotePort === undefined ? undefined : `${remoteAddress} ${remotePort}`;
}
