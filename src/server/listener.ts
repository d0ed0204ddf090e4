import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describeError, KubelingError, type Logger } from '../lib/index.ts';
import { dispatch, type Response, type Route, text } from './router.ts';

export interface ListenerOptions {
  readonly host: string;
  /** 0 for any that is free. */
  readonly port: number;
  readonly routes: readonly Route[];
  readonly logger: Logger;
}

/** Scrapers keep their connections for longer than the default of five seconds. */
const keepAliveMs = 90_000;
const maxHeaderBytes = 1 << 20;

/** Plain HTTP on the loopback interface. */
export class Listener implements AsyncDisposable {
  readonly #server: Server;
  readonly #calls = new AbortController();

  private constructor(server: Server) {
    this.#server = server;
  }

  static async open(options: ListenerOptions): Promise<Listener> {
    const server = createServer({ keepAliveTimeout: keepAliveMs, maxHeaderSize: maxHeaderBytes });
    const listener = new Listener(server);
    server.on('request', (request, response) => listener.#serve(options, request, response));
    await new Promise<void>((resolve, reject) => {
      const refuse = (cause: Error) =>
        reject(
          new KubelingError('SERVER_LISTEN', `Cannot listen on ${options.host}:${options.port}`, { cause }),
        );
      server.once('error', refuse);
      server.listen(options.port, options.host, () => {
        server.off('error', refuse);
        server.on('error', (error) => options.logger.error('The listener failed', error));
        resolve();
      });
    });
    return listener;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Ends every request and stops listening. */
  async close(): Promise<void> {
    this.#calls.abort(new KubelingError('CANCELLED', 'The server is closing'));
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #serve({ routes, logger }: ListenerOptions, incoming: IncomingMessage, outgoing: ServerResponse): void {
    outgoing.on('error', () => {});
    // Nothing served here takes a body; what a client sends all the same is read and dropped.
    incoming.resume();
    const target = URL.parse(incoming.url ?? '/', 'http://localhost');
    // A client may write anything there; an exception out of this callback would end the process.
    if (target === null) {
      send(outgoing, text(400, '400: Bad Request'));
      return;
    }
    const { pathname, searchParams } = target;
    const request = { method: incoming.method ?? 'GET', path: pathname, query: searchParams };
    dispatch(routes, request, this.#calls.signal).then(
      (response) => send(outgoing, response),
      (error) => {
        logger.error('Cannot answer a request', error, { method: request.method, path: request.path });
        send(outgoing, text(500, `Internal Error: ${describeError(error)}`));
      },
    );
  }
}

function send(outgoing: ServerResponse, { status, contentType, body }: Response): void {
  if (outgoing.destroyed) return;
  outgoing.writeHead(status, {
    'content-type': contentType,
    'x-content-type-options': 'nosniff',
    'content-length': Buffer.byteLength(body),
  });
  outgoing.end(body);
}
