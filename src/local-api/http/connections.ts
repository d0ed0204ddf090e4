import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { TLSSocket } from 'node:tls';
import {
  type ConnectionClass,
  ConnectionGuard,
  type ConnectionQuota,
  type OnEnd,
} from '../../protocols/http1/index.ts';
import type { ApiUser } from '../api/index.ts';
import type { ClientInfo, VerifiedClientCertificate } from './server-deps.ts';

/** Tracks all connections of the server and their client certificates. */
export class Connections {
  /**
   * The open connections. node:http tracks neither connections in the TLS handshake nor upgraded
   * ones.
   */
  readonly #open = new Set<Socket>();
  readonly #upgraded = new Set<Duplex>();
  readonly #certificates = new WeakMap<TLSSocket, VerifiedClientCertificate>();
  readonly #guard: ConnectionGuard;

  constructor(quota?: Partial<ConnectionQuota>) {
    this.#guard = new ConnectionGuard(quota);
  }

  track(server: Server): void {
    server.on('connection', (socket: Socket) => {
      this.#open.add(socket);
      socket.once('close', () => this.#open.delete(socket));
    });
    // Allows each direction of an upgraded connection to end separately. It is set after the
    // handshake, because the server would otherwise keep the connection of a client that
    // disconnects during the handshake.
    server.on('secureConnection', (socket: TLSSocket) => {
      socket.allowHalfOpen = true;
    });
    this.#guard.track(server);
  }

  /**
   * Starts to respond to a request, unless its connection has too many requests without response.
   */
  serve(incoming: IncomingMessage, outgoing: ServerResponse, start: (onEnd: OnEnd) => void): void {
    this.#guard.serve(incoming, outgoing, start);
  }

  /** Whether no user has been authenticated on the connection. */
  isAnonymous({ socket }: IncomingMessage): boolean {
    return this.#guard.isAnonymous(socket);
  }

  /** Records the user of a request on the connection. */
  authenticated({ socket }: IncomingMessage, user: ApiUser): void {
    this.#guard.authenticated(socket, connectionClass(user));
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

  #certificateOf(socket: Socket): VerifiedClientCertificate | undefined {
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

function connectionClass({ groups }: ApiUser): ConnectionClass {
  if (groups.includes('system:masters') || groups.includes('system:nodes')) return 'trusted';
  return groups.includes('system:unauthenticated') ? 'anonymous' : 'unprivileged';
}
