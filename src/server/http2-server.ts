import type { IncomingMessage, ServerResponse } from 'node:http';
import type http2 from 'node:http2';
import type { TLSSocket } from 'node:tls';
import type { Logger } from '../lib/index.ts';
import { maxHeaderBytes } from '../protocols/http1/index.ts';

/**
 * Requests and responses of both HTTP versions are used alike; the connection identifies the
 * client.
 */
export type Http2Listener = (request: IncomingMessage, response: ServerResponse, socket: TLSSocket) => void;

export interface Http2ServerLimits {
  /** Idle timeout of a connection without requests. */
  readonly idleMs: number;
}

/**
 * The limits of a connection. Requests that a client begins and resets cost it nothing: a connection with more resets is
 * closed. The API server shows a certificate, and many log requests may end at once on its connection.
 */
const limits = {
  withCertificate: { maxStreams: 250, streamResetBurst: 500, streamResetRate: 50 },
  others: { maxStreams: 32, streamResetBurst: 50, streamResetRate: 10 },
} as const;
type ClientKind = keyof typeof limits;

/**
 * Serves connections that have negotiated HTTP/2. Upgraded streams always use HTTP/1.1. The module
 * is loaded with the first such connection, because many nodes have none.
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
    // The request or its connection was lost meanwhile, and no event would report its end.
    if (socket === undefined || request.stream.destroyed || request.stream.closed) {
      request.stream.destroy();
      return;
    }
    for (const listener of this.#listeners) {
      // The HTTP/2 API is compatible with HTTP/1.1; unsupported parts are not used.
      listener(request as unknown as IncomingMessage, response as unknown as ServerResponse, socket);
    }
  }
}

/**
 * A connection with a request stays open however idle it is: a followed log may be idle for hours.
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
