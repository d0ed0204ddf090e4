import type { IncomingMessage, Server } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { TLSSocket } from 'node:tls';
import type { ApiUser } from '../core/index.ts';
import { type ConnectionLimits, ConnectionPools } from './connection-pools.ts';
import type { CallerFacts, PeerCertificate } from './front-deps.ts';

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
