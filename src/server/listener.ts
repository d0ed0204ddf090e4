import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { describeError, KubelingError, LinkedController, type Logger } from '../lib/index.ts';
import { type Choice, choose, type Request, type Route, text, type UpgradeRoute } from './router.ts';
import { refuse, send } from './send.ts';

export interface ListenerOptions {
  readonly host: string;
  /** 0 for any that is free. */
  readonly port: number;
  readonly routes: readonly Route[];
  /** Who takes connections over; a request to upgrade to anything that is not here is answered like any other. */
  readonly upgrades?: readonly UpgradeRoute[] | undefined;
  readonly logger: Logger;
}

/** Scrapers keep their connections for longer than the default of five seconds. */
const keepAliveMs = 90_000;
const maxHeaderBytes = 1 << 20;

/** Plain HTTP on the loopback interface. */
export class Listener implements AsyncDisposable {
  readonly #server: Server;
  readonly #options: ListenerOptions;
  readonly #calls = new AbortController();
  /** The HTTP server forgets a connection once it is upgraded. */
  readonly #upgraded = new Set<Duplex>();

  private constructor(options: ListenerOptions) {
    this.#options = options;
    const { upgrades = [] } = options;
    this.#server = createServer({
      keepAliveTimeout: keepAliveMs,
      maxHeaderSize: maxHeaderBytes,
      shouldUpgradeCallback: (incoming) => {
        const target = readTarget(incoming);
        return target !== undefined && choose(upgrades, methodOf(incoming), target.pathname).kind === 'found';
      },
    });
    this.#server.on('request', (request, response) => this.#serve(request, response));
    this.#server.on('upgrade', (request, socket, head) => this.#upgrade(request, socket, head));
  }

  static async open(options: ListenerOptions): Promise<Listener> {
    const listener = new Listener(options);
    const server = listener.#server;
    await new Promise<void>((resolve, reject) => {
      const refused = (cause: Error) =>
        reject(
          new KubelingError('SERVER_LISTEN', `Cannot listen on ${options.host}:${options.port}`, { cause }),
        );
      server.once('error', refused);
      server.listen(options.port, options.host, () => {
        server.off('error', refused);
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
    for (const socket of this.#upgraded) socket.destroy();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #serve(incoming: IncomingMessage, outgoing: ServerResponse): void {
    const call = new LinkedController(this.#calls.signal);
    outgoing.on('error', () => {});
    outgoing.on('close', () => {
      call.abort(new KubelingError('CANCELLED', 'The client is gone'));
      call[Symbol.dispose]();
    });
    // Nothing served here takes a body; what a client sends all the same is read and dropped.
    incoming.resume();
    this.#answer(incoming, call.signal)
      .then((response) => send(outgoing, response, call.signal))
      .catch(async (error) => {
        this.#complain(incoming, error, call.signal);
        // What has begun cannot become an error any more: a connection that breaks off says it.
        if (outgoing.headersSent) outgoing.destroy();
        else await send(outgoing, internalError(error), call.signal);
      })
      .catch(() => outgoing.destroy());
  }

  async #answer(incoming: IncomingMessage, signal: AbortSignal) {
    const choice = chooseFor(this.#options.routes, incoming);
    if (choice.kind === 'refused') return choice.response;
    return await choice.route.answer(requestOf(incoming, choice.params), signal);
  }

  #upgrade(incoming: IncomingMessage, socket: Duplex, head: Uint8Array): void {
    this.#upgraded.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => this.#upgraded.delete(socket));
    incoming.resume();
    this.#takeOver(incoming, socket, head)
      .catch((error) => {
        this.#complain(incoming, error, this.#calls.signal);
        return internalError(error);
      })
      .then((response) => {
        if (response === undefined) socket.destroy();
        else refuse(socket, response);
      })
      .catch(() => socket.destroy());
  }

  async #takeOver(incoming: IncomingMessage, socket: Duplex, head: Uint8Array) {
    const choice = chooseFor(this.#options.upgrades ?? [], incoming);
    if (choice.kind === 'refused') return choice.response;
    const request = requestOf(incoming, choice.params);
    const { url: target = '/', rawHeaders } = incoming;
    return await choice.route.upgrade({ request, target, rawHeaders, socket, head }, this.#calls.signal);
  }

  #complain(incoming: IncomingMessage, error: unknown, signal: AbortSignal): void {
    if (signal.aborted) return;
    const path = readTarget(incoming)?.pathname;
    this.#options.logger.error('Cannot answer a request', error, { method: methodOf(incoming), path });
  }
}

function internalError(error: unknown) {
  return text(500, `Internal Error: ${describeError(error)}`);
}

function methodOf(incoming: IncomingMessage): string {
  return incoming.method ?? 'GET';
}

/** A client may write anything there; an exception out of a callback of the server would end the process. */
function readTarget(incoming: IncomingMessage): URL | undefined {
  return URL.parse(incoming.url ?? '/', 'http://localhost') ?? undefined;
}

function chooseFor<R extends Route | UpgradeRoute>(
  routes: readonly R[],
  incoming: IncomingMessage,
): Choice<R> {
  const target = readTarget(incoming);
  if (target === undefined) return { kind: 'refused', response: text(400, '400: Bad Request') };
  return choose(routes, methodOf(incoming), target.pathname);
}

function requestOf(incoming: IncomingMessage, params: Readonly<Record<string, string>>): Request {
  const target = readTarget(incoming);
  return {
    method: methodOf(incoming),
    path: target?.pathname ?? '/',
    params,
    query: target?.searchParams ?? new URLSearchParams(),
    headers: incoming.headers,
  };
}
