import type { IncomingMessage, ServerResponse } from 'node:http';
import type http2 from 'node:http2';
import type { TLSSocket } from 'node:tls';
import type { Logger } from '../lib/index.ts';
import { maxHeaderBytes } from '../protocols/http1/index.ts';

/** Handles a request of either HTTP version; the connection identifies the client. */
export type Http2Listener = (request: IncomingMessage, response: ServerResponse, socket: TLSSocket) => void;

export interface Http2ServerLimits {
  /** Time after which a connection without requests is closed. */
  readonly idleMs: number;
}

/**
 * Limits of an HTTP/2 connection. A connection on which the client resets too many requests is
 * closed, because reset requests cost the client nothing. The limits are higher for clients with a
 * certificate: the API server is such a client, and many of its log requests may end at the same
 * time.
 */
const limits = {
  withCertificate: { maxStreams: 250, streamResetBurst: 500, streamResetRate: 50 },
  others: { maxStreams: 32, streamResetBurst: 50, streamResetRate: 10 },
} as const;
type ClientKind = keyof typeof limits;

/**
 * Serves connections that have negotiated HTTP/2. Upgraded streams always use HTTP/1.1. The HTTP/2
 * module is loaded with the first such connection, because many nodes never have one.
 */
export class Http2Server {
  readonly #limits: Http2ServerLimits;
  readonly #logger: Logger;
  readonly #listeners: Http2Listener[] = [];
  readonly #sockets = new WeakMap<object, TLSSocket>();
  readonly #servers = new Map<ClientKind, http2.Http2Server>();

  constructor(limits: Http2ServerLimits, logger: Logger) {
    this.#limits = limits;
    this.#logger = logger;
  }

  onRequest(listener: Http2Listener): void {
    this.#listeners.push(listener);
  }

  accept(socket: TLSSocket): void {
    const kind = socket.authorized ? 'withCertificate' : 'others';
    const server = this.#servers.get(kind) ?? this.#create(kind);
    this.#servers.set(kind, server);
    server.once('session', (session: object) => this.#sockets.set(session, socket));
    server.emit('connection', socket);
  }

  #create(kind: ClientKind): http2.Http2Server {
    const { idleMs } = this.#limits;
    const { maxStreams, ...resets } = limits[kind];
    const settings = {
      maxConcurrentStreams: maxStreams,
      maxHeaderListSize: maxHeaderBytes[kind],
      enablePush: false,
    };
    const server = process.getBuiltinModule('node:http2').createServer({ ...resets, settings });
    server.on('session', (session) => closeWhenIdle(session, idleMs));
    server.on('sessionError', (error) =>
      this.#logger.v(4)?.info('HTTP/2 connection failed', { because: String(error) }),
    );
    server.on('request', (request, response) => this.#forward(request, response));
    return server;
  }

  #forward(request: http2.Http2ServerRequest, response: http2.Http2ServerResponse): void {
    const { session } = request.stream;
    const socket = session === undefined ? undefined : this.#sockets.get(session);
    // The request or its connection has already ended, so no later event would report the end of
    // the request.
    if (socket === undefined || request.stream.destroyed || request.stream.closed) {
      request.stream.destroy();
      return;
    }
    for (const listener of this.#listeners) {
      // Node's HTTP/2 compatibility API has the same methods as its HTTP/1.1 API; parts that it
      // does not support are not used.
      listener(request as unknown as IncomingMessage, response as unknown as ServerResponse, socket);
    }
  }
}

/**
 * Closes a connection after the idle timeout, but not while a request is open: a followed log may
 * be silent for hours.
 */
function closeWhenIdle(session: http2.ServerHttp2Session, idleMs: number): void {
  let open = 0;
  session.on('stream', (stream) => {
    open++;
    stream.once('close', () => {
      open--;
    });
  });
  session.setTimeout(idleMs, () => {
    if (open === 0) session.close();
  });
  session.on('error', () => {});
}

/** The stream of an HTTP/2 response; undefined for HTTP/1.1. */
export function http2StreamOf(response: ServerResponse): http2.ServerHttp2Stream | undefined {
  return (response as { readonly stream?: http2.ServerHttp2Stream }).stream;
}
