import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  constants,
  createServer,
  type Http2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import { connect as connectSocket } from 'node:net';

/** The gRPC calls of the CRI and of containerd that return a stream of events. */
const eventCalls: ReadonlySet<string> = new Set([
  '/runtime.v1.RuntimeService/GetContainerEvents',
  '/containerd.services.events.v1.Events/Subscribe',
]);

/**
 * A proxy between a client and containerd on Unix sockets. It can drop events: their streams then
 * stay open, and all other calls work, as when a runtime loses its subscribers.
 */
export class EventProxy implements AsyncDisposable {
  events: 'pass' | 'swallow' = 'pass';
  swallowed = 0;
  /** Called for each complete request, with its message. */
  sent: ((call: string, message: Buffer) => void) | undefined;
  readonly #target: string;
  readonly #server: Http2Server;
  readonly #behind = new Map<ServerHttp2Session, ClientHttp2Session>();

  constructor(target: string) {
    this.#target = target;
    this.#server = createServer();
    this.#server.on('session', (session) => this.#connect(session));
    this.#server.on('stream', (near, headers) => this.#pass(near as ServerHttp2Stream, headers));
  }

  async listen(path: string): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(path, () => resolve());
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const [near, far] of this.#behind) {
      near.destroy();
      far.destroy();
    }
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  /** Each client connection has its own server connection, so that closing one closes the other. */
  #connect(near: ServerHttp2Session): void {
    const far = connect('http://localhost', { createConnection: () => connectSocket(this.#target) });
    this.#behind.set(near, far);
    near.on('error', () => far.destroy());
    far.on('error', () => near.destroy());
    near.on('close', () => far.destroy());
    far.on('close', () => {
      near.destroy();
      this.#behind.delete(near);
    });
  }

  #pass(near: ServerHttp2Stream, headers: IncomingHttpHeaders): void {
    const behind =
      near.session === undefined ? undefined : this.#behind.get(near.session as ServerHttp2Session);
    if (behind === undefined || behind.destroyed) {
      near.close(constants.NGHTTP2_REFUSED_STREAM);
      return;
    }
    const far = behind.request(headers);
    tieEnds(near, far);
    near.pipe(far);
    if (this.sent !== undefined) tellOf(near, (message) => this.sent?.(String(headers[':path']), message));
    passAnswer(near, far);
    if (eventCalls.has(String(headers[':path']))) this.#passEvents(near, far);
    else far.pipe(near);
  }

  #passEvents(near: ServerHttp2Stream, far: ClientHttp2Stream): void {
    far.on('data', (chunk) => {
      if (this.events === 'pass') near.write(chunk);
      else this.swallowed++;
    });
    far.on('end', () => near.end());
  }
}

function tellOf(near: ServerHttp2Stream, tell: (message: Buffer) => void): void {
  const chunks: Buffer[] = [];
  near.on('data', (chunk: Buffer) => chunks.push(chunk));
  // A gRPC message has a prefix of five bytes.
  near.on('end', () => tell(Buffer.concat(chunks).subarray(5)));
}

/**
 * Copies headers at the beginning and trailers at the end; gRPC may send both in one frame, without
 * a body.
 */
function passAnswer(near: ServerHttp2Stream, far: ClientHttp2Stream): void {
  let trailers: IncomingHttpHeaders = {};
  far.on('trailers', (received) => {
    trailers = received;
  });
  near.on('wantTrailers', () => near.sendTrailers(trailers));
  far.on('response', (answer, flags) => {
    if (near.destroyed) return;
    const isAll = (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0;
    near.respond(answer, isAll ? { endStream: true } : { waitForTrailers: true });
  });
}

/** Cancels the server's stream when the client cancels the call, and vice versa. */
function tieEnds(near: ServerHttp2Stream, far: ClientHttp2Stream): void {
  near.on('error', () => {});
  far.on('error', () => {});
  near.on('close', () => {
    if (!far.closed) far.close(near.rstCode || constants.NGHTTP2_CANCEL);
  });
  far.on('close', () => {
    if (far.rstCode !== constants.NGHTTP2_NO_ERROR && !near.closed) near.close(far.rstCode);
  });
}
