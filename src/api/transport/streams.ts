import type http2 from 'node:http2';
import type { Readable } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import { asError, type Clock, describeError, KeyedMutex, onAbort, type Timer } from '../../lib/index.ts';
import { BrokenConnection, systemCodeOf } from '../client/retry.ts';
import type { WireAnswer, WireRequest } from './connection-pool.ts';

/**
 * The protocols offered in the TLS handshake: watches share a connection only if the server selects
 * h2.
 */
export const alpnProtocols = ['h2', 'http/1.1'];
/**
 * The maximum number of streams per connection. Servers allow at least a hundred; further streams
 * would wait.
 */
const mostStreams = 100;
/** A connection without data for this long is probed. */
const silenceMs = 30_000;
/** A probed server must respond within this time. */
const answerMs = 15_000;
/**
 * The flow-control window: the default of 64 KiB would slow down the first list of a large cluster.
 */
const windowBytes = 1024 * 1024;

/** Opens a TLS connection that offers HTTP/2. Rejects with the signal's reason or the failure. */
export type Dial = (signal: AbortSignal) => Promise<TLSSocket>;

export interface SharedStreamsDeps {
  readonly origin: string;
  readonly clock: Clock;
  readonly dial: Dial;
  /** Called with the connection, and takes it over, if the server selected HTTP/1.1. */
  readonly onHttp1: (socket: TLSSocket) => void;
}

/**
 * Runs many watches over one HTTP/2 connection, which needs a fifth of the memory of separate
 * connections and fewer handshakes. Opens another connection when the existing ones have no free
 * stream.
 */
export class SharedStreams {
  readonly #deps: SharedStreamsDeps;
  readonly #sessions = new Set<http2.ClientHttp2Session>();
  readonly #streams = new WeakMap<http2.ClientHttp2Session, number>();
  readonly #dialing = new KeyedMutex<'session'>();
  #offers: 'unknown' | 'http/2' | 'http/1' = 'unknown';

  constructor(deps: SharedStreamsDeps) {
    this.#deps = deps;
  }

  /**
   * Sends a request and resolves with the response headers, or with undefined if the server does
   * not use HTTP/2. Rejects with the signal's reason or a BrokenConnection.
   */
  async send(request: WireRequest, signal: AbortSignal): Promise<WireAnswer | undefined> {
    if (this.#offers === 'http/1') return undefined;
    const session = await this.#session(signal);
    return session && (await this.#request(session, request, signal));
  }

  /** Stops using the existing connections for new streams; each closes with its last stream. */
  drain(): void {
    for (const session of [...this.#sessions]) this.#retire(session);
  }

  closeIdle(): void {
    for (const session of [...this.#sessions]) if (this.#load(session) === 0) this.#retire(session);
  }

  /** Closes all connections, including those with streams in flight. */
  close(): void {
    const sessions = [...this.#sessions];
    this.#sessions.clear();
    for (const session of sessions) session.destroy();
  }

  async #session(signal: AbortSignal): Promise<http2.ClientHttp2Session | undefined> {
    using _slot = await this.#dialing.acquire('session', signal);
    if (this.#offers === 'http/1') return undefined;
    return this.#withFreeStream() ?? (await this.#open(signal));
  }

  #withFreeStream(): http2.ClientHttp2Session | undefined {
    return [...this.#sessions].find((session) => {
      const most = Math.min(session.remoteSettings?.maxConcurrentStreams ?? mostStreams, mostStreams);
      return !session.closed && !session.destroyed && this.#load(session) < most;
    });
  }

  #load(session: http2.ClientHttp2Session): number {
    return this.#streams.get(session) ?? 0;
  }

  async #open(signal: AbortSignal): Promise<http2.ClientHttp2Session | undefined> {
    const socket = await this.#deps.dial(signal);
    this.#offers = socket.alpnProtocol === 'h2' ? 'http/2' : 'http/1';
    if (this.#offers === 'http/1') {
      this.#deps.onHttp1(socket);
      return undefined;
    }
    // node:http2 is loaded on demand, because not every server supports HTTP/2.
    const session = process.getBuiltinModule('node:http2').connect(this.#deps.origin, {
      createConnection: () => socket,
      settings: { enablePush: false, initialWindowSize: windowBytes },
    });
    this.#sessions.add(session);
    // The error is ignored here because each stream reports it.
    session.on('error', () => {});
    session.on('goaway', () => this.#retire(session));
    session.on('close', () => this.#sessions.delete(session));
    this.#monitor(session, socket);
    return session;
  }

  /**
   * Probes a connection that receives no data, and closes it if the server is dead; its watches
   * then resume over another one.
   */
  #monitor(session: http2.ClientHttp2Session, socket: TLSSocket): void {
    const { clock } = this.#deps;
    let timer: Timer;
    const checkLiveness = (bytesReceived: number) => {
      timer = clock.timer(silenceMs, () => {
        // The session has ended and sent all data, but the server has not closed the connection: it
        // is closed here.
        if (session.destroyed) return void socket.destroy();
        if (socket.bytesRead > bytesReceived) return checkLiveness(socket.bytesRead);
        timer = clock.timer(answerMs, () => session.destroy());
        session.ping((error) => {
          timer.cancel();
          if (error === null) checkLiveness(socket.bytesRead);
        });
      });
    };
    checkLiveness(socket.bytesRead);
    session.once('close', () => timer.cancel());
  }

  #retire(session: http2.ClientHttp2Session): void {
    this.#sessions.delete(session);
    if (!session.destroyed) session.close();
  }

  #request(
    session: http2.ClientHttp2Session,
    request: WireRequest,
    signal: AbortSignal,
  ): Promise<WireAnswer> {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted();
      const stream = this.#openStream(session, request);
      const link = onAbort(signal, (reason) => {
        stream.destroy(asError(reason));
        reject(reason);
      });
      const fail = (error?: unknown) => {
        link[Symbol.dispose]();
        reject(signal.aborted ? signal.reason : brokenStream(error));
      };
      // The listeners for errors and for the close stay registered after the response headers,
      // because the connection may also break during the response, and the reader of the response
      // must get that error too.
      stream.on('error', fail);
      stream.on('close', fail);
      stream.once('response', (headers) => {
        link[Symbol.dispose]();
        resolve(answerOf(stream, headers));
      });
    });
  }

  #openStream(
    session: http2.ClientHttp2Session,
    { method, path, headers }: WireRequest,
  ): http2.ClientHttp2Stream {
    const stream = this.#requested(session, { ':method': method, ':path': path, ...headers });
    this.#streams.set(session, this.#load(session) + 1);
    stream.once('close', () => this.#streams.set(session, this.#load(session) - 1));
    return stream;
  }

  #requested(
    session: http2.ClientHttp2Session,
    headers: Readonly<Record<string, string>>,
  ): http2.ClientHttp2Stream {
    try {
      return session.request(headers, { endStream: true });
    } catch (error) {
      // The session has closed without having emitted its close event yet, so it is retired here.
      this.#retire(session);
      throw brokenStream(error);
    }
  }
}

function answerOf(stream: http2.ClientHttp2Stream, headers: http2.IncomingHttpHeaders): WireAnswer {
  const { ':status': status, ...rest } = headers;
  return Object.assign(stream as Readable, { statusCode: Number(status), headers: rest });
}

/**
 * Creates the error for a stream that ended before its response, because the connection broke or
 * the server rejected the stream.
 */
function brokenStream(error: unknown): BrokenConnection {
  const code = systemCodeOf(error);
  if (code !== undefined && !code.startsWith('ERR_HTTP2_')) return new BrokenConnection(error, 'reused');
  const why = error === undefined ? 'the stream was closed' : describeError(error);
  return new BrokenConnection(Object.assign(new Error(`HTTP/2: ${why}`), { code: 'ECONNRESET' }), 'reused');
}
