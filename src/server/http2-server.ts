import type { IncomingMessage, ServerResponse } from 'node:http';
import type http2 from 'node:http2';
import type { TLSSocket } from 'node:tls';
import type { Logger } from '../lib/index.ts';

/** Requests and answers of both versions of HTTP are used alike; the connection tells who asks. */
export type Http2Listener = (request: IncomingMessage, response: ServerResponse, socket: TLSSocket) => void;

export interface Http2Limits {
  /** How long a connection may be without any request. */
  readonly idleMs: number;
  readonly maxHeaderBytes: number;
}

/** As many requests at once as one connection may have; whoever wants more opens another. */
const maxStreams = 250;
/** Requests begun and broken off again at once cost us and not the client: past these the connection ends. */
const resets = { streamResetBurst: 500, streamResetRate: 50 };

/**
 * Takes over connections that have agreed on HTTP/2. Streams that are upgraded never come this way. The module is loaded
 * with the first such connection: many a node never sees one.
 */
export class Http2Server {
  readonly #limits: Http2Limits;
  readonly #logger: Logger;
  readonly #listeners: Http2Listener[] = [];
  readonly #sockets = new WeakMap<object, TLSSocket>();
  #server: http2.Http2Server | undefined;

  constructor(limits: Http2Limits, logger: Logger) {
    this.#limits = limits;
    this.#logger = logger;
  }

  onRequest(listener: Http2Listener): void {
    this.#listeners.push(listener);
  }

  take(socket: TLSSocket): void {
    this.#server ??= this.#make();
    this.#server.once('session', (session: object) => this.#sockets.set(session, socket));
    this.#server.emit('connection', socket);
  }

  #make(): http2.Http2Server {
    const { idleMs, maxHeaderBytes } = this.#limits;
    const server = process.getBuiltinModule('node:http2').createServer({
      ...resets,
      settings: { maxConcurrentStreams: maxStreams, maxHeaderListSize: maxHeaderBytes, enablePush: false },
    });
    server.on('session', (session) => closeWhenIdle(session, idleMs));
    server.on('sessionError', (error) =>
      this.#logger.v(4)?.info('A connection of HTTP/2 failed', { because: String(error) }),
    );
    server.on('request', (request, response) => this.#tell(request, response));
    return server;
  }

  #tell(request: http2.Http2ServerRequest, response: http2.Http2ServerResponse): void {
    const { session } = request.stream;
    const socket = session === undefined ? undefined : this.#sockets.get(session);
    // The request or its whole connection was lost in between: nothing would tell of its end any more.
    if (socket === undefined || request.stream.destroyed || request.stream.closed) {
      request.stream.destroy();
      return;
    }
    for (const listener of this.#listeners) {
      // Made to be used as the ones of before; what is not offered is not used.
      listener(request as unknown as IncomingMessage, response as unknown as ServerResponse, socket);
    }
  }
}

/** A connection with a request on it stays, however long nothing is said: a log may be silent for hours. */
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

/** The stream of an answer over HTTP/2; undefined for one of before. */
export function http2StreamOf(response: ServerResponse): http2.ServerHttp2Stream | undefined {
  return (response as { readonly stream?: http2.ServerHttp2Stream }).stream;
}
