import type { IncomingHttpHeaders, IncomingMessage, Server, ServerOptions, ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import {
  type Clock,
  describeError,
  KubelingError,
  LinkedController,
  type Logger,
  nodeHttp,
  onAbort,
} from '../lib/index.ts';
import {
  ConnectionGuard,
  type ConnectionQuota,
  guardedServerOptions,
  maxAnonymousTarget,
  type OnEnd,
  type RequestTarget,
  splitTarget,
} from '../protocols/http1/index.ts';
import type { Gate } from './auth/index.ts';
import type { HttpMetrics } from './http-metrics.ts';
import { http2StreamOf } from './http2-server.ts';
import {
  type Choice,
  choose,
  type Request,
  type Response,
  type Route,
  text,
  type UpgradeRoute,
} from './router.ts';
import type { SecureServer, ServingTls } from './secure-server.ts';
import { refuse, send } from './send.ts';

export interface ListenerOptions {
  readonly host: string;
  /** Port to listen on; 0 for any free port. */
  readonly port: number;
  readonly routes: readonly Route[];
  /** Routes of upgrade requests; an upgrade that matches none is handled as a plain request. */
  readonly upgrades?: readonly UpgradeRoute[] | undefined;
  readonly logger: Logger;
  /** TLS settings; undefined for plain HTTP. */
  readonly tls?: ServingTls | undefined;
  /**
   * Authenticates and authorizes requests and upgrades; undefined to let every client use every
   * route.
   */
  readonly gate?: Gate | undefined;
  readonly metrics?: HttpMetrics | undefined;
  /**
   * Maximum numbers of connections; by default 512 of unauthenticated and 1,024 of unprivileged
   * clients.
   */
  readonly connections?: Partial<ConnectionQuota> | undefined;
}

/**
 * Idle time before a kept-alive connection is closed; scrapers need more than the default of five
 * seconds.
 */
const keepAliveMs = 90_000;

/** The TLS modules are loaded only for a server with TLS. */
async function createPlainServer({
  tls,
  upgrades = [],
  logger,
}: ListenerOptions): Promise<Server | SecureServer> {
  const http: ServerOptions = {
    ...guardedServerOptions,
    keepAliveTimeout: keepAliveMs,
    // This callback only separates upgrades from plain requests; both are authenticated and
    // authorized before they are handled.
    shouldUpgradeCallback: (incoming) => {
      const { path } = readTarget(incoming);
      return path !== undefined && choose(upgrades, methodOf(incoming), path).kind === 'found';
    },
  };
  if (tls === undefined) return nodeHttp.createServer(http);
  const { createSecureServer } = await import('./secure-server.ts');
  return createSecureServer(tls, http, logger);
}

/** An HTTP or HTTPS server that listens on one address. */
export class Listener implements AsyncDisposable {
  readonly #server: Server;
  readonly #options: ListenerOptions;
  readonly #calls = new AbortController();
  /** Upgraded connections, which the HTTP server no longer tracks. */
  readonly #upgraded = new Set<Duplex>();
  readonly #secureServer: SecureServer | undefined;
  readonly #guard: ConnectionGuard;

  private constructor(options: ListenerOptions, server: Server | SecureServer) {
    this.#options = options;
    this.#secureServer = 'server' in server ? server : undefined;
    this.#server = 'server' in server ? server.server : server;
    this.#guard = new ConnectionGuard(options.connections);
    this.#guard.track(this.#server);
    this.#server.on('request', (request, response) =>
      this.#guard.serve(request, response, (onEnd) => this.#serve(request, response, request.socket, onEnd)),
    );
    this.#secureServer?.onHttp2((request, response, socket) =>
      this.#guard.runLimited(socket, () => {
        const onEnd = (callback: () => void) => void response.once('close', callback);
        if (http2StreamOf(response)?.closed === false) this.#serve(request, response, socket, onEnd);
      }),
    );
    this.#server.on('upgrade', (request, socket, head) => this.#upgrade(request, socket as Socket, head));
  }

  static async open(options: ListenerOptions): Promise<Listener> {
    const listener = new Listener(options, await createPlainServer(options));
    const server = listener.#server;
    await new Promise<void>((resolve, reject) => {
      const refused = (cause: Error) => {
        listener.#secureServer?.[Symbol.dispose]();
        const where = `${options.host}:${options.port}`;
        reject(new KubelingError('SERVER_LISTEN', `Cannot listen on ${where}`, { cause }));
      };
      server.once('error', refused);
      server.listen(options.port, options.host, () => {
        server.off('error', refused);
        server.on('error', (error) => options.logger.error('Listener failed', error));
        resolve();
      });
    });
    return listener;
  }

  /** Opens the listener; retries while the address is in use, until the signal is aborted. */
  static async openWhenFree(
    options: ListenerOptions,
    { clock, everyMs }: { readonly clock: Clock; readonly everyMs: number },
    signal: AbortSignal,
  ): Promise<Listener> {
    for (;;) {
      try {
        return await Listener.open(options);
      } catch (error) {
        options.logger.error('Failed to listen, retrying', error);
        await clock.sleep(everyMs, signal);
      }
    }
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Aborts all requests and stops listening. */
  async close(): Promise<void> {
    this.#calls.abort(new KubelingError('CANCELLED', 'The server is closing'));
    this.#secureServer?.[Symbol.dispose]();
    this.#server.closeAllConnections();
    for (const socket of this.#upgraded) socket.destroy();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #serve(incoming: IncomingMessage, outgoing: ServerResponse, socket: Socket, onEnd: OnEnd): void {
    const call = new LinkedController(this.#calls.signal);
    const target = readTarget(incoming);
    const done = this.#startRequest(incoming, target);
    outgoing.on('error', () => {});
    onEnd(() => {
      done(outgoing.statusCode);
      call.abort(new KubelingError('CANCELLED', 'The client disconnected'));
      call[Symbol.dispose]();
    });
    this.#respond(incoming, target, socket, call.signal)
      .then((response) => {
        if (response.headers?.['connection'] === 'close') this.#closeAfter(outgoing, socket);
        return send(outgoing, response, call.signal);
      })
      .catch(async (error) => {
        this.#logFailure(incoming, target, error, call.signal);
        // Error responses cannot be sent after the headers; closing the connection signals the
        // failure.
        if (outgoing.headersSent) outgoing.destroy();
        else await send(outgoing, internalError(error), call.signal);
      })
      .catch(() => outgoing.destroy());
  }

  /**
   * An HTTP/2 connection ends only after the client has read the GOAWAY frame, and until then the
   * server parses further frames of the client. So the connection of an anonymous client is closed
   * without waiting for this, after its received frames were read, so that it gets the response.
   */
  #closeAfter(outgoing: ServerResponse, socket: Socket): void {
    if (http2StreamOf(outgoing) === undefined || !this.#guard.isAnonymous(socket)) return;
    outgoing.once('close', () => setImmediate(() => setImmediate(() => socket.destroy())));
  }

  async #respond(
    incoming: IncomingMessage,
    target: Target,
    socket: Socket,
    signal: AbortSignal,
  ): Promise<Response> {
    const refused = await this.#refused(incoming, target, socket, signal);
    const choice = refused ?? chooseFor(this.#options.routes, incoming, target);
    // A body that the route does not read is drained; otherwise a disconnect would not be detected.
    if (choice.kind === 'refused' || choice.route.body !== 'read') incoming.resume();
    if (choice.kind === 'refused') return choice.response;
    return await choice.route.answer(requestOf(incoming, target, choice.params), signal);
  }

  #upgrade(incoming: IncomingMessage, socket: Socket, head: Uint8Array): void {
    const target = readTarget(incoming);
    const done = this.#startRequest(incoming, target);
    this.#upgraded.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => {
      this.#upgraded.delete(socket);
      done(undefined);
    });
    incoming.resume();
    this.#handOver(incoming, target, socket, head)
      .catch((error) => {
        this.#logFailure(incoming, target, error, this.#calls.signal);
        return internalError(error);
      })
      .then((response) => {
        if (response === undefined) socket.destroy();
        else refuse(socket, response);
      })
      .catch(() => socket.destroy());
  }

  async #handOver(incoming: IncomingMessage, target: Target, socket: Socket, head: Uint8Array) {
    const { signal } = this.#calls;
    const refused = await this.#refused(incoming, target, socket, signal);
    const choice = refused ?? chooseFor(this.#options.upgrades ?? [], incoming, target);
    if (choice.kind === 'refused') return choice.response;
    const request = requestOf(incoming, target, choice.params);
    const { url = '/', rawHeaders } = incoming;
    return await choice.route.upgrade({ request, target: url, rawHeaders, socket, head }, signal);
  }

  /**
   * Authenticates and authorizes the request before any other processing; returns the error
   * response for a rejected request.
   */
  async #refused(
    incoming: IncomingMessage,
    { path = '', length }: Target,
    socket: Socket,
    signal: AbortSignal,
  ): Promise<Refused | undefined> {
    const { headers } = incoming;
    const certificate = this.#secureServer?.certificateOf(socket);
    if (length > maxAnonymousTarget && certificate === undefined && !showsToken(headers)) {
      return { kind: 'refused', response: this.#closing(text(414, '414: URI Too Long'), socket) };
    }
    const { gate } = this.#options;
    if (gate === undefined) return undefined;
    const caller = { method: methodOf(incoming), path, headers, certificate };
    const { connection, rejection } = await gate.admit(caller, signal);
    this.#guard.authenticated(socket, connection);
    return rejection && { kind: 'refused', response: this.#closing(rejection, socket) };
  }

  /**
   * Closes the connection of a rejected client without credentials, so that each further request
   * costs it a new connection.
   */
  #closing(rejection: Response, socket: Socket): Response {
    if (!this.#guard.isAnonymous(socket)) return rejection;
    return { ...rejection, headers: { ...rejection.headers, connection: 'close' } };
  }

  /** Counts a request as started; the returned function is called at its end. */
  #startRequest(incoming: IncomingMessage, { path = '' }: Target): (status: number | undefined) => void {
    const { metrics, logger } = this.#options;
    const method = methodOf(incoming);
    const measured = metrics?.begin(method, path);
    return (status) => {
      measured?.();
      logger.v(3)?.info('HTTP', { verb: method, path, resp: status });
    };
  }

  #logFailure(incoming: IncomingMessage, { path }: Target, error: unknown, signal: AbortSignal): void {
    if (signal.aborted) return;
    this.#options.logger.error('Failed to handle request', error, { method: methodOf(incoming), path });
  }
}

type Refused = Extract<Choice<never>, { kind: 'refused' }>;

function internalError(error: unknown) {
  return text(500, `Internal Error: ${describeError(error)}`);
}

function methodOf(incoming: IncomingMessage): string {
  return incoming.method ?? 'GET';
}

/** The parsed target of a request. */
interface Target extends RequestTarget {
  /**
   * Path normalized as in URLs; undefined when it is no path or too long. Authorization and the
   * router both use this path.
   */
  readonly path: string | undefined;
}

const maxPath = 16 * 1024;

/**
 * Parses the request target without ever throwing: an exception in a callback of the HTTP server
 * would end the process.
 */
function readTarget({ url = '/' }: IncomingMessage): Target {
  const [withoutFragment = ''] = url.split('#', 1);
  const target = splitTarget(withoutFragment);
  const { writtenPath, length } = target;
  const parsed = writtenPath.length > maxPath ? null : URL.parse(writtenPath, 'http://localhost');
  return {
    writtenPath,
    length,
    path: parsed?.pathname,
    get query() {
      return target.query;
    },
  };
}

/** Whether a request has credentials in its headers, valid or not. */
function showsToken(headers: IncomingHttpHeaders): boolean {
  return headers.authorization !== undefined || headers['sec-websocket-protocol'] !== undefined;
}

function chooseFor<R extends Route | UpgradeRoute>(
  routes: readonly R[],
  incoming: IncomingMessage,
  { path, writtenPath }: Target,
): Choice<R> {
  if (path !== undefined) return choose(routes, methodOf(incoming), path);
  const response =
    writtenPath.length > maxPath ? text(414, '414: URI Too Long') : text(400, '400: Bad Request');
  return { kind: 'refused', response };
}

function requestOf(
  incoming: IncomingMessage,
  target: Target,
  params: Readonly<Record<string, string>>,
): Request {
  return {
    method: methodOf(incoming),
    path: target.path ?? '/',
    params,
    get query() {
      return target.query;
    },
    headers: incoming.headers,
    body: (maxBytes, signal) => readBody(incoming, maxBytes, signal),
  };
}

/**
 * Reads the request body as text. Rejects when it is too long or incomplete, or when the signal is
 * aborted.
 */
export async function readBody(
  incoming: IncomingMessage,
  maxBytes: number,
  signal: AbortSignal,
): Promise<string> {
  using _link = onAbort(signal, (reason) => incoming.destroy(reason as Error));
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of incoming.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > maxBytes) {
      incoming.resume();
      throw new KubelingError(
        'REQUEST_BODY',
        `Cannot read a request body: it must be at most ${maxBytes} bytes`,
      );
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}
