import { constants, type X509Certificate } from 'node:crypto';
import { createServer, type Server, type ServerOptions } from 'node:https';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { createSecureContext, type SecureContextOptions, TLSSocket } from 'node:tls';
import type { ServedCertificate } from '../certificates/index.ts';
import { describeError, type Logger } from '../lib/index.ts';
import type { ClientCa } from './auth/client-ca.ts';
import type { PeerCertificate } from './auth/identity.ts';
import { type Http2Listener, Http2Server } from './http2-server.ts';
import type { TlsProfile } from './tls-profile.ts';

/** Chain and key, both in PEM. */
export interface ServingCertificate {
  readonly cert: string;
  readonly key: string;
}

/** Where the certificate to serve with comes from; it may change, and need not be there yet. */
export interface CertificateSource {
  /** Undefined while there is none: handshakes fail then. */
  current(): ServingCertificate | undefined;
  /** Called after each change, until disposed. */
  onChange(listener: () => void): Disposable;
}

/** A certificate that is kept in order elsewhere, as one to serve with. */
export function servedWith(kept: Pick<ServedCertificate, 'current' | 'onRotated'>): CertificateSource {
  return {
    current() {
      const pair = kept.current();
      return pair === undefined ? undefined : { cert: pair.certificatePem, key: pair.keyPem };
    },
    onChange: (listener) => kept.onRotated(() => listener()),
  };
}

export interface ServingTls {
  readonly certificates: CertificateSource;
  /** Clients are asked for a certificate only when there is somebody to vouch for it. */
  readonly clientCa: ClientCa | undefined;
  readonly profile: TlsProfile;
}

/** Disposing of it breaks off all its connections, those without a finished handshake included. */
export interface SecureServer extends Disposable {
  readonly server: Server;
  /** Called for each request over HTTP/2; the server itself tells of the others. */
  onHttp2(listener: Http2Listener): void;
  /** What the client of a connection showed at the handshake; the same object for the same connection. */
  certificateOf(socket: Duplex): PeerCertificate | undefined;
}

const handshakeWithinMs = 10_000;
const idleMs = 90_000;
const maxHeaderBytes = 1 << 20;
/** A client that resumed an earlier session would be trusted for what was true then. Renegotiation is of no use. */
const secureOptions = constants.SSL_OP_NO_TICKET | constants.SSL_OP_NO_RENEGOTIATION;

/** Takes new certificates and authorities over while it serves; connections there are already stay as they are. */
export function createSecureServer(tls: ServingTls, options: ServerOptions, logger: Logger): SecureServer {
  const contexts = new Contexts(tls, logger);
  const server = createServer({
    ...options,
    ...contexts.next(),
    handshakeTimeout: handshakeWithinMs,
    requestCert: tls.clientCa !== undefined,
    // Who shows none may show a token; what the one shown is worth is settled request by request.
    rejectUnauthorized: false,
    ALPNProtocols: ['h2', 'http/1.1'],
  });
  const http2 = new Http2Server(
    { idleMs: options.keepAliveTimeout ?? idleMs, maxHeaderBytes: options.maxHeaderSize ?? maxHeaderBytes },
    logger,
  );
  dispatchByProtocol(server, http2);
  const renew = () => {
    server.setSecureContext(contexts.next());
    logger.info('Serves with what certificates there are now');
  };
  const links = [tls.certificates.onChange(renew), tls.clientCa?.onChange(renew)];
  // The server itself knows only those whose handshake is over.
  const connections = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    connections.add(socket);
    socket.once('close', () => connections.delete(socket));
  });
  // As plain HTTP has it: each way of an upgraded connection ends by itself. Not before the handshake is over, as who
  // leaves during it would be waited for.
  server.on('secureConnection', (socket) => {
    if (socket.alpnProtocol !== 'h2') socket.allowHalfOpen = true;
  });
  server.on('tlsClientError', (error) =>
    logger.v(4)?.info('A handshake failed', { because: describeError(error) }),
  );
  const certificates = new PeerCertificates();
  return {
    server,
    onHttp2: (listener) => http2.onRequest(listener),
    certificateOf: (socket) => certificates.of(socket),
    [Symbol.dispose]: () => {
      for (const link of links) link?.[Symbol.dispose]();
      for (const socket of connections) socket.destroy();
    },
  };
}

/** What the server would do with every connection it now does with those of its own version only. */
function dispatchByProtocol(server: Server, http2: Http2Server): void {
  const own = server.listeners('secureConnection');
  server.removeAllListeners('secureConnection');
  server.on('secureConnection', (socket: TLSSocket) => {
    if (socket.alpnProtocol === 'h2') http2.take(socket);
    else for (const listener of own) listener.call(server, socket);
  });
}

/** Remembers the last pair that could be used: a broken one must not keep new authorities from being taken over. */
class Contexts {
  readonly #tls: ServingTls;
  readonly #logger: Logger;
  #good: ServingCertificate | undefined;

  constructor(tls: ServingTls, logger: Logger) {
    this.#tls = tls;
    this.#logger = logger;
  }

  next(): SecureContextOptions {
    const pair = this.#tls.certificates.current();
    try {
      const options = contextOf(this.#tls, pair);
      createSecureContext(options);
      this.#good = pair ?? this.#good;
    } catch (error) {
      this.#logger.error('Cannot serve with the certificate there is; the last good one stays', error);
    }
    return contextOf(this.#tls, this.#good);
  }
}

function contextOf(
  { clientCa, profile }: ServingTls,
  pair: ServingCertificate | undefined,
): SecureContextOptions {
  const { minVersion, ciphers, ecdhCurve } = profile;
  return {
    minVersion,
    ciphers,
    ecdhCurve,
    secureOptions,
    // Without any, Node would trust all authorities of the web.
    ...(clientCa === undefined ? {} : { ca: clientCa.current().pem }),
    ...(pair === undefined ? {} : { cert: pair.cert, key: pair.key }),
  };
}

const maxChain = 10;

class PeerCertificates {
  readonly #known = new WeakMap<TLSSocket, PeerCertificate>();

  of(socket: Duplex): PeerCertificate | undefined {
    if (!(socket instanceof TLSSocket)) return undefined;
    const known = this.#known.get(socket) ?? read(socket);
    if (known !== undefined) this.#known.set(socket, known);
    return known;
  }
}

function read(socket: TLSSocket): PeerCertificate | undefined {
  const own = socket.getPeerX509Certificate();
  if (own === undefined) return undefined;
  const chain: X509Certificate[] = [];
  let next: X509Certificate | undefined = own;
  while (next !== undefined && chain.length < maxChain) {
    chain.push(next);
    next = next.issuerCertificate;
  }
  if (socket.authorized) return { chain, verdict: { kind: 'trusted' } };
  return { chain, verdict: { kind: 'untrusted', why: String(socket.authorizationError ?? 'not verified') } };
}
