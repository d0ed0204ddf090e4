import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import type { SecureContextOptions, TlsOptions } from 'node:tls';
import { describeError, KubelingError, LinkedController } from '../../lib/index.ts';
import { guardedServerOptions, type OnEnd } from '../../protocols/http1/index.ts';
import { Connections } from './connections.ts';
import { RequestHandler } from './request-handler.ts';
import { respondToRequest, respondToUpgrade } from './respond.ts';
import type { ApiServerDeps } from './server-deps.ts';

export interface ListenOptions {
  readonly host: string;
  /** The port to listen on; 0 for any free port. */
  readonly port: number;
  /**
   * The server certificate and key. Client certificates are requested but optional: they are
   * verified per request.
   */
  readonly tls: TlsOptions;
}

/**
 * The time after which the server closes idle connections: clients keep them for 90 seconds, and
 * the server must not close them first.
 */
const keepAliveMs = 100_000;
const handshakeTimeoutMs = 10_000;
/** The time for in-flight requests to complete after the server is closed. */
const closeTimeoutMs = 1_000;

/** The HTTPS server of the API, which supports HTTP/1.1 only. */
export class ApiServer implements AsyncDisposable {
  readonly #deps: ApiServerDeps;
  readonly #handler: RequestHandler;
  readonly #requests = new AbortController();
  readonly #connections: Connections;
  /**
   * One shared error for all disconnected clients, because its stack trace has no useful
   * information.
   */
  readonly #clientDisconnected = new KubelingError('CANCELLED', 'The client has disconnected');
  #server: Server | undefined;

  constructor(deps: ApiServerDeps) {
    this.#deps = deps;
    this.#connections = new Connections(deps.connections);
    this.#handler = new RequestHandler(deps, (incoming, user) =>
      this.#connections.authenticated(incoming, user),
    );
  }

  /**
   * Starts to listen. Rejects with SERVER_LISTEN if the address is not available; only then
   * `listen` may be called again.
   */
  async listen({ host, port, tls }: ListenOptions): Promise<{ readonly port: number }> {
    if (this.#server !== undefined)
      throw new KubelingError('BUG', 'Cannot listen: the server is already listening');
    const server = this.#createServer(tls);
    this.#server = server;
    await new Promise<void>((resolve, reject) => {
      const refused = (cause: Error) => {
        this.#server = undefined;
        reject(new KubelingError('SERVER_LISTEN', `Cannot listen on ${host}:${port}`, { cause }));
      };
      server.once('error', refused);
      server.listen(port, host, () => {
        server.off('error', refused);
        server.on('error', (error) => this.#deps.logger.error('Failed to accept connections', error));
        resolve();
      });
    });
    return { port: (server.address() as AddressInfo).port };
  }

  /** Uses the new certificate for new connections; existing ones are not affected. */
  setSecureContext(options: SecureContextOptions): void {
    this.#server?.setSecureContext(options);
  }

  /**
   * Aborts every request, stops listening and destroys the connections whose requests do not end in
   * time. May be called twice.
   */
  async close(): Promise<void> {
    const server = this.#server;
    this.#requests.abort(new KubelingError('CANCELLED', 'The API server is shutting down'));
    if (server === undefined || !server.listening) return;
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    this.#connections.closeUpgraded();
    server.closeIdleConnections();
    using _timer = this.#deps.clock.timer(closeTimeoutMs, () => this.#connections.destroyAll());
    await closed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #createServer(tls: TlsOptions): Server {
    const server = createServer({
      ...tls,
      ALPNProtocols: ['http/1.1'],
      handshakeTimeout: handshakeTimeoutMs,
      keepAliveTimeout: keepAliveMs,
      ...guardedServerOptions,
      // The result of this callback only selects whether Node.js emits `request` or `upgrade`; the
      // request is authenticated and authorized in both cases.
      shouldUpgradeCallback: (incoming) => this.#handler.mayUpgrade(incoming),
    });
    this.#connections.track(server);
    server.on('request', (incoming, outgoing) =>
      this.#connections.serve(incoming, outgoing, (onEnd) => this.#request(incoming, outgoing, onEnd)),
    );
    server.on('upgrade', (incoming, socket, head) => this.#upgrade(incoming, socket, head));
    server.on('tlsClientError', (error) =>
      this.#deps.logger.v(4)?.info('TLS handshake failed', { because: describeError(error) }),
    );
    return server;
  }

  #request(incoming: IncomingMessage, outgoing: ServerResponse, onEnd: OnEnd): void {
    const call = new LinkedController(this.#requests.signal);
    outgoing.on('error', () => {});
    onEnd(() => {
      const { method, url = '' } = incoming;
      const path = url.split('?', 1)[0];
      this.#deps.logger.v(3)?.info('HTTP', { verb: method, path, resp: outgoing.statusCode });
      call.abort(this.#clientDisconnected);
      call[Symbol.dispose]();
    });
    const facts = this.#connections.clientInfoOf(incoming);
    const isAnonymous = () => this.#connections.isAnonymous(incoming);
    respondToRequest(
      { incoming, outgoing, facts, isAnonymous },
      this.#handler,
      this.#deps,
      call.signal,
    ).catch((error) => {
      this.#deps.logger.error('Failed to respond to request', error);
      outgoing.destroy();
    });
  }

  #upgrade(incoming: IncomingMessage, socket: Duplex, head: Uint8Array): void {
    const call = new LinkedController(this.#requests.signal);
    this.#connections.trackUpgraded(socket);
    socket.on('error', () => {});
    socket.on('close', () => {
      call.abort(this.#clientDisconnected);
      call[Symbol.dispose]();
    });
    const facts = this.#connections.clientInfoOf(incoming);
    respondToUpgrade({ incoming, socket, head, facts }, this.#handler, this.#deps, call.signal).catch(
      (error) => {
        this.#deps.logger.error('Failed to respond to upgrade request', error);
        socket.destroy();
      },
    );
  }
}
