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

/** Certificate chain and key, both in PEM. */
export interface ServingCertificate {
  readonly cert: string;
  readonly key: string;
}

/** Source of the serving certificate, which may change and may be missing after start. */
export interface CertificateSource {
  /** The current certificate; undefined while there is none, in which case handshakes fail. */
  current(): ServingCertificate | undefined;
  /** Calls the listener after each change of the certificate, until it is disposed. */
  onChange(listener: () => void): Disposable;
}

/** Creates a CertificateSource for a certificate that another component rotates. */
export function servedWith(certificate: Pick<ServedCertificate, 'current' | 'onRotated'>): CertificateSource {
  return {
    current() {
      const pair = certificate.current();
      return pair === undefined ? undefined : { cert: pair.certificatePem, key: pair.keyPem };
    },
    onChange: (listener) => certificate.onRotated(() => listener()),
  };
}

export interface ServingTls {
  readonly certificates: CertificateSource;
  /** The client CA bundle; undefined to request no client certificates. */
  readonly clientCa: ClientCa | undefined;
  readonly profile: TlsProfile;
}

/**
 * An HTTPS server. Disposing it closes all connections, including those without a finished
 * handshake.
 */
export interface SecureServer extends Disposable {
  readonly server: Server;
  /** Sets the handler of HTTP/2 requests; the server itself emits HTTP/1.1 requests. */
  onHttp2(listener: Http2Listener): void;
  /**
   * The certificate chain that the client presented at the handshake; the same object for each call
   * with the same connection.
   */
  certificateOf(socket: Duplex): PeerCertificate | undefined;
}

const handshakeWithinMs = 10_000;
const idleMs = 90_000;
/**
 * Disables session resumption, which would keep an outdated verification result, and renegotiation,
 * which is not needed.
 */
const secureOptions = constants.SSL_OP_NO_TICKET | constants.SSL_OP_NO_RENEGOTIATION;

/**
 * Creates an HTTPS server that applies new certificates and CA bundles at run time; existing
 * connections are not changed.
 */
export function createSecureServer(tls: ServingTls, options: ServerOptions, logger: Logger): SecureServer {
  const contexts = new Contexts(tls, logger);
  const server = createServer({
    ...options,
    ...contexts.next(),
    handshakeTimeout: handshakeWithinMs,
    requestCert: tls.clientCa !== undefined,
    // Handshakes without a certificate succeed, because a client may use a token; a presented
    // certificate is verified per request.
    rejectUnauthorized: false,
    ALPNProtocols: ['h2', 'http/1.1'],
  });
  const http2 = new Http2Server({ idleMs: options.keepAliveTimeout ?? idleMs }, logger);
  dispatchByProtocol(server, http2);
  const renew = () => {
    server.setSecureContext(contexts.next());
    logger.info('Applied new serving certificate or client CA bundle');
  };
  const links = [tls.certificates.onChange(renew), tls.clientCa?.onChange(renew)];
  // All open connections are tracked here, because Node's HTTPS server tracks a connection only
  // after its handshake.
  const connections = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    connections.add(socket);
    socket.once('close', () => connections.delete(socket));
  });
  // As in plain HTTP, each direction of an upgraded connection ends separately. This is set after
  // the handshake: otherwise the server would wait for a client that disconnects during the
  // handshake.
  server.on('secureConnection', (socket) => {
    if (socket.alpnProtocol !== 'h2') socket.allowHalfOpen = true;
  });
  server.on('tlsClientError', (error) =>
    logger.v(4)?.info('TLS handshake failed', { because: describeError(error) }),
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

/** Replaces Node's connection handler, which then receives HTTP/1.1 connections only. */
function dispatchByProtocol(server: Server, http2: Http2Server): void {
  const own = server.listeners('secureConnection');
  server.removeAllListeners('secureConnection');
  server.on('secureConnection', (socket: TLSSocket) => {
    if (socket.alpnProtocol === 'h2') http2.accept(socket);
    else for (const listener of own) listener.call(server, socket);
  });
}

/**
 * Builds TLS contexts; keeps the last valid certificate, because an invalid one must not prevent
 * the use of a new CA bundle.
 */
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
      this.#logger.error('Failed to load serving certificate, keeping the last good one', error);
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
    // Without an explicit CA, Node.js would trust all public CAs.
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
