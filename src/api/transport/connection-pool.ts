import type {
  ClientRequest,
  ClientRequestArgs,
  IncomingHttpHeaders,
  IncomingMessage,
  Agent as PlainAgent,
} from 'node:http';
import { type AgentOptions, Agent as TlsAgent, request as tlsRequest } from 'node:https';
import { isIP, type Socket } from 'node:net';
import type { Duplex, Readable } from 'node:stream';
import {
  type ConnectionOptions,
  connect as connectTls,
  createSecureContext,
  type SecureContextOptions,
  TLSSocket,
} from 'node:tls';
import { asError, type Clock, nodeHttp, onAbort } from '../../lib/index.ts';
import { BrokenConnection } from '../client/retry.ts';
import type { Access } from '../credentials/credentials.ts';
import type { ServerCertificateInfo } from './failures.ts';
import { alpnProtocols, SharedStreams } from './streams.ts';
import { type TunnelDone, Tunnels } from './tunnel.ts';

export interface WireRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** The path with its query, relative to the API root. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
}

/** A response whose body has not been read yet. */
export interface WireAnswer extends Readable {
  readonly statusCode?: number | undefined;
  readonly headers: IncomingHttpHeaders;
}

export interface ConnectionPoolOptions {
  readonly clock: Clock;
  readonly proxy: URL | undefined;
  /** Whether HTTP/2 may be used; only watches use it. */
  readonly http2: 'if-offered' | 'never';
}

/**
 * How long an idle connection is kept. API servers close idle connections after 90 s; a shorter
 * time prevents requests on a connection that is being closed.
 */
const idleMs = 60_000;
/**
 * The idle time of a connection after which the kernel sends keepalive probes every second, up to
 * ten times.
 */
const silenceMs = 30_000;
const maxIdle = 32;
/** A watch without events for this long may have lost its server. */
const unresponsiveMs = 15_000;

type ConnectionDone = (error: Error | null, socket: Duplex) => void;

/** A connection or watch that is closed when its pool is retired. */
export interface Retirable {
  retire(): void;
  /** Ends the watch if it received nothing for this long. */
  retireIfUnresponsive(ms: number): void;
}

/**
 * The connections to one server with one TLS identity. When server or identity change, a new pool
 * is created and this one is retired: idle connections and watches are closed immediately, and a
 * connection with a request in flight is closed after the response.
 */
export class ConnectionPool {
  readonly access: Access;
  readonly #server: ServerEnd;
  readonly #agent: TlsAgent | PlainAgent;
  readonly #watches = new Set<Retirable>();
  readonly #tunnels: Tunnels | undefined;
  readonly #shared: SharedStreams | undefined;
  /**
   * A connection that was opened for HTTP/2 but negotiated HTTP/1.1; the next HTTP/1.1 request uses
   * it.
   */
  #spare: TLSSocket | undefined;
  #peer: ServerCertificateInfo | undefined;
  #isRetired = false;

  constructor(access: Access, { clock, proxy, http2 }: ConnectionPoolOptions) {
    this.access = access;
    this.#server = endOf(access);
    this.#tunnels = proxy === undefined ? undefined : new Tunnels(proxy);
    const options = agentOptions(access);
    const { origin, protocol } = access.context.cluster.server;
    this.#agent = protocol === 'https:' ? new TlsAgent(options) : new nodeHttp.Agent(options);
    if (protocol === 'https:' && http2 === 'if-offered')
      this.#shared = new SharedStreams({
        origin,
        clock,
        dial: (signal) => this.#dial(options, signal),
        onHttp1: (socket) => {
          this.#spare = socket;
        },
      });
    this.#watchConnections();
  }

  /** The certificate that the server presented last. */
  get peer(): ServerCertificateInfo | undefined {
    return this.#peer;
  }

  /**
   * Sends a request and resolves with the response headers. Rejects with the signal's reason or a
   * BrokenConnection.
   */
  send(request: WireRequest, signal: AbortSignal): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted();
      const outgoing = this.#open(request);
      // Destroying a request that still waits for a connection may emit no error, so the promise is
      // also rejected here with the abort reason.
      const link = onAbort(signal, (reason) => {
        outgoing.destroy(asError(reason));
        reject(reason);
      });
      // The error listener stays registered after the response headers, because a connection may
      // also break during the response; the reader of the response gets that error too.
      outgoing.on('error', (error) => {
        link[Symbol.dispose]();
        reject(
          signal.aborted
            ? signal.reason
            : new BrokenConnection(error, outgoing.reusedSocket ? 'reused' : 'new'),
        );
      });
      outgoing.once('response', (message) => {
        link[Symbol.dispose]();
        resolve(message);
      });
      outgoing.end(request.body);
    });
  }

  /** Like `send`, for a streamed response, over a shared connection where possible. */
  async sendWatch(request: WireRequest, signal: AbortSignal): Promise<WireAnswer> {
    const { prefix } = this.#server;
    const shared = await this.#shared?.send({ ...request, path: prefix + request.path }, signal);
    if (shared !== undefined) return shared;
    try {
      return await this.send(request, signal);
    } finally {
      this.#spare?.destroy();
      this.#spare = undefined;
    }
  }

  /** Registers a watch, so that it is retired with the pool until `releaseWatch` is called. */
  holdWatch(watch: Retirable): void {
    if (this.#isRetired) watch.retire();
    else this.#watches.add(watch);
  }

  releaseWatch(watch: Retirable): void {
    this.#watches.delete(watch);
  }

  closeIdle(): void {
    for (const socket of Object.values(this.#agent.freeSockets).flatMap((each) => each ?? []))
      socket.destroy();
    this.#shared?.closeIdle();
  }

  /** Ends all watches without recent events; they resume over new connections. */
  endSilentWatches(): void {
    this.#shared?.drain();
    for (const watch of [...this.#watches]) watch.retireIfUnresponsive(unresponsiveMs);
  }

  retire(): void {
    this.#isRetired = true;
    // Once keepAlive is off, the agent closes a connection that is in use as soon as its request is
    // done.
    Object.assign(this.#agent, { keepAlive: false });
    this.closeIdle();
    for (const watch of [...this.#watches]) watch.retire();
    this.#shared?.drain();
  }

  /** Closes all connections, including those with requests in flight. */
  close(): void {
    this.retire();
    this.#tunnels?.close();
    this.#shared?.close();
    this.#agent.destroy();
  }

  #open({ method, path, headers }: WireRequest): ClientRequest {
    const { hostname: host, port, protocol, prefix } = this.#server;
    const request = protocol === 'https:' ? tlsRequest : nodeHttp.request;
    return request({ method, host, port, path: prefix + path, headers: { ...headers }, agent: this.#agent });
  }

  #watchConnections(): void {
    const agent: PlainAgent = this.#agent;
    const connect = agent.createConnection.bind(agent);
    agent.createConnection = (options, done) => {
      if (this.#tunnels !== undefined) return this.#tunnel(this.#tunnels, options, done);
      const connection = this.#takeSpare() ?? connect(options, done);
      if (connection) this.#prepare(connection);
      return connection;
    };
  }

  #takeSpare(): TLSSocket | undefined {
    const spare = this.#spare;
    this.#spare = undefined;
    return spare?.destroyed === false ? spare : undefined;
  }

  #tunnel(tunnels: Tunnels, options: ClientRequestArgs, done: ConnectionDone | undefined): undefined {
    const { hostname: host, port, protocol } = this.#server;
    tunnels.open({ host, port }, (error, socket) => {
      if (error !== null || socket === undefined) return (done as TunnelDone | undefined)?.(error, undefined);
      const connection =
        protocol === 'https:' ? connectTls({ ...(options as ConnectionOptions), socket }) : socket;
      this.#prepare(connection);
      return done?.(null, connection);
    });
    return undefined;
  }

  /** Opens a connection for HTTP/2 without the agent, which supports only HTTP/1.1. */
  async #dial(secrets: ConnectionOptions, signal: AbortSignal): Promise<TLSSocket> {
    const { hostname: host, port } = this.#server;
    const named = isIP(host) === 0 ? { servername: host } : {};
    const tunneled = this.#tunnels && { socket: await this.#tunnels.opened({ host, port }, signal) };
    const options = { host, port, ...named, ...secrets, ...tunneled, ALPNProtocols: alpnProtocols };
    const socket = connectTls(options);
    this.#prepare(socket);
    return await secured(socket, signal);
  }

  #prepare(socket: Duplex): void {
    (socket as Socket).setKeepAlive(true, silenceMs);
    if (socket instanceof TLSSocket) socket.prependListener('secure', () => this.#recordPeer(socket));
  }

  /**
   * Records the server's certificate before its verification: after a failed verification the
   * connection no longer has it.
   */
  #recordPeer(socket: TLSSocket): void {
    const { subject, valid_from, valid_to } = socket.getPeerCertificate();
    if (valid_to !== undefined)
      this.#peer = { subject: String(subject?.CN), validFrom: valid_from, expires: valid_to };
  }
}

/** Resolves when the TLS handshake is done and the server's certificate is verified. */
function secured(socket: TLSSocket, signal: AbortSignal): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const link = onAbort(signal, (reason) => {
      socket.destroy(asError(reason));
      reject(reason);
    });
    socket.once('secureConnect', () => {
      link[Symbol.dispose]();
      resolve(socket);
    });
    socket.once('error', (error) => {
      link[Symbol.dispose]();
      reject(new BrokenConnection(error, 'new'));
    });
  });
}

function agentOptions({ context, identity }: Access): AgentOptions {
  const { tlsServerName, verification } = context.cluster;
  return {
    keepAlive: true,
    maxFreeSockets: maxIdle,
    scheduling: 'lifo',
    timeout: idleMs,
    rejectUnauthorized: verification === 'full',
    ...(tlsServerName === undefined ? {} : { servername: tlsServerName }),
    ...(context.cluster.server.protocol === 'https:' ? secretsOf(identity) : {}),
  };
}

/**
 * Parses certificates and keys once per pool, because parsing them for each connection takes longer
 * than the handshake.
 */
function secretsOf({ ca, client }: Access['identity']): SecureContextOptions | ConnectionOptions {
  const secrets = {
    ...(ca === undefined ? {} : { ca: ca.pem }),
    ...(client === undefined ? {} : { cert: client.cert, key: client.key }),
  };
  try {
    return { secureContext: createSecureContext(secrets) };
  } catch {
    // Invalid certificates are not reported here: each request that uses them fails with the error.
    return secrets;
  }
}

interface ServerEnd {
  /** The host name or IP address of the server; an IPv6 address has no brackets. */
  readonly hostname: string;
  readonly port: number;
  readonly protocol: string;
  /** The prefix of all API paths. */
  readonly prefix: string;
}

function endOf({ context }: Access): ServerEnd {
  const { hostname, port, protocol, pathname } = context.cluster.server;
  return {
    hostname: hostname.replace(/^\[|\]$/g, ''),
    port: Number(port) || (protocol === 'https:' ? 443 : 80),
    protocol,
    prefix: pathname.replace(/\/$/, ''),
  };
}
