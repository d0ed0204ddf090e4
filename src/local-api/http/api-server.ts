import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import type { SecureContextOptions, TlsOptions } from 'node:tls';
import { describeError, KubelingError, LinkedController } from '../../lib/index.ts';
import type { ConnectionLimits } from './connections.ts';
import { Connections } from './connections.ts';
import { RequestHandler } from './request-handler.ts';
import { answerRequest, answerUpgrade } from './respond.ts';
import type { FrontDeps } from './server-deps.ts';

export interface ListenOptions {
  readonly host: string;
  /** 0 for any that is free. */
  readonly port: number;
  /** Clients are to be asked for a certificate, but not turned away: what one is worth is settled request by request. */
  readonly tls: TlsOptions;
}

/** Clients keep idle connections for 90 seconds; who closes one first must not be the server. */
const keepAliveMs = 100_000;
/** Commands of exec travel in the query. */
const maxHeaderBytes = 1 << 20;
const headersWithinMs = 60_000;
/** Only for what a client sends: bodies have deadlines of their own, and answers may go on for as long as they like. */
const requestWithinMs = 300_000;
const handshakeWithinMs = 10_000;
/** Clients that are gone without a word are noticed even where nothing is sent for long. */
const probeEveryMs = 30_000;
const mostConnections = 4_096;
const usualLimits: ConnectionLimits = { strangers: 512, guests: 1_024 };
/** How long what is under way may take to end once the front is closed. */
const closeWithinMs = 1_000;

/** Where the API is served: HTTPS, one request after the other on a connection. */
export class ApiFront implements AsyncDisposable {
  readonly #deps: FrontDeps;
  readonly #handler: RequestHandler;
  readonly #calls = new AbortController();
  readonly #connections: Connections;
  /** The end of every call, and where it was made says nothing: one does for all. */
  readonly #clientGone = new KubelingError('CANCELLED', 'The client is gone');
  #server: Server | undefined;

  constructor(deps: FrontDeps) {
    this.#deps = deps;
    this.#connections = new Connections({ ...usualLimits, ...deps.connections });
    this.#handler = new RequestHandler(deps, (incoming, user) => this.#connections.used(incoming, user));
  }

  /** Rejects with the code SERVER_LISTEN when the address cannot be had: only then it may be called again. */
  async listen({ host, port, tls }: ListenOptions): Promise<{ readonly port: number }> {
    if (this.#server !== undefined) throw new KubelingError('BUG', 'The front listens already');
    const server = this.#makeServer(tls);
    this.#server = server;
    await new Promise<void>((resolve, reject) => {
      const refused = (cause: Error) => {
        this.#server = undefined;
        reject(new KubelingError('SERVER_LISTEN', `Cannot listen on ${host}:${port}`, { cause }));
      };
      server.once('error', refused);
      server.listen(port, host, () => {
        server.off('error', refused);
        server.on('error', (error) => this.#deps.logger.error('The listener of the API failed', error));
        resolve();
      });
    });
    return { port: (server.address() as AddressInfo).port };
  }

  /** Serves new connections with what it is given; those there are already go on as they are. */
  setSecureContext(options: SecureContextOptions): void {
    this.#server?.setSecureContext(options);
  }

  /** Ends every request and stops listening; whatever does not end by itself is broken off. May be called twice. */
  async close(): Promise<void> {
    const server = this.#server;
    this.#calls.abort(new KubelingError('CANCELLED', 'The API is closing'));
    if (server === undefined || !server.listening) return;
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    this.#connections.closeUpgraded();
    server.closeIdleConnections();
    using _timer = this.#deps.clock.timer(closeWithinMs, () => this.#connections.destroyAll());
    await closed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #makeServer(tls: TlsOptions): Server {
    const server = createServer({
      ...tls,
      ALPNProtocols: ['http/1.1'],
      handshakeTimeout: handshakeWithinMs,
      keepAliveTimeout: keepAliveMs,
      maxHeaderSize: maxHeaderBytes,
      headersTimeout: headersWithinMs,
      requestTimeout: requestWithinMs,
      keepAlive: true,
      keepAliveInitialDelay: probeEveryMs,
      // Only decides by which of the two ways it is answered; whether the caller may is asked on both.
      shouldUpgradeCallback: (incoming) => this.#handler.mayUpgrade(incoming),
    });
    server.maxConnections = mostConnections;
    this.#connections.watch(server);
    server.on('request', (incoming, outgoing) => this.#request(incoming, outgoing));
    server.on('upgrade', (incoming, socket, head) => this.#upgrade(incoming, socket, head));
    server.on('tlsClientError', (error) =>
      this.#deps.logger.v(4)?.info('A handshake with the API failed', { because: describeError(error) }),
    );
    return server;
  }

  #request(incoming: IncomingMessage, outgoing: ServerResponse): void {
    const call = new LinkedController(this.#calls.signal);
    outgoing.on('error', () => {});
    outgoing.on('close', () => {
      const { method, url = '' } = incoming;
      const path = url.split('?', 1)[0];
      this.#deps.logger.v(3)?.info('HTTP', { verb: method, path, resp: outgoing.statusCode });
      call.abort(this.#clientGone);
      call[Symbol.dispose]();
    });
    const facts = this.#connections.factsOf(incoming);
    answerRequest({ incoming, outgoing, facts }, this.#handler, this.#deps, call.signal).catch((error) => {
      this.#deps.logger.error('Cannot answer a request to the API at all', error);
      outgoing.destroy();
    });
  }

  #upgrade(incoming: IncomingMessage, socket: Duplex, head: Uint8Array): void {
    const call = new LinkedController(this.#calls.signal);
    this.#connections.upgraded(socket);
    socket.on('error', () => {});
    socket.on('close', () => {
      call.abort(this.#clientGone);
      call[Symbol.dispose]();
    });
    const facts = this.#connections.factsOf(incoming);
    answerUpgrade({ incoming, socket, head, facts }, this.#handler, this.#deps, call.signal).catch(
      (error) => {
        this.#deps.logger.error('Cannot answer a request to upgrade at all', error);
        socket.destroy();
      },
    );
  }
}
