import type http2 from 'node:http2';
import type { Readable } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import { asError, type Clock, describeError, KeyedMutex, onAbort, type Timer } from '../../lib/index.ts';
import { BrokenConnection, systemCodeOf } from '../client/retry.ts';
import type { WireAnswer, WireRequest } from './connection-pool.ts';

/** What a server must offer for many watches to share a connection; with the other each has one of its own. */
export const offeredProtocols = ['h2', 'http/1.1'];
/** Servers allow a hundred at least; one more would wait in silence for another to end. */
const mostStreams = 100;
/** When nothing comes over a connection for so long the other side is asked whether it is there, */
const silenceMs = 30_000;
/** and has so long to answer. */
const answerMs = 15_000;
/** A first list of a large cluster does not come in pieces of 64 KiB. */
const windowBytes = 1024 * 1024;

/** A connection that the server may have chosen HTTP/2 for. Rejects with the signal's reason, or why there is none. */
export type Dial = (signal: AbortSignal) => Promise<TLSSocket>;

export interface SharedStreamsDeps {
  readonly origin: string;
  readonly clock: Clock;
  readonly dial: Dial;
  /** Given the connection on which the server has turned out not to speak HTTP/2. */
  readonly declined: (socket: TLSSocket) => void;
}

/**
 * Requests whose answers go on and on, many over one HTTP/2 connection: each costs a fifth of what a connection of its
 * own would, in memory and in greeting the server. A connection more is made when those there are have enough.
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
   * Answers when the headers are there, or with undefined if the server does not speak HTTP/2. Rejects with the
   * signal's reason, or with a BrokenConnection.
   */
  async send(request: WireRequest, signal: AbortSignal): Promise<WireAnswer | undefined> {
    if (this.#offers === 'http/1') return undefined;
    const session = await this.#session(signal);
    return session && (await this.#ask(session, request, signal));
  }

  /** Nothing new goes over the connections there are; they end with what they carry. */
  drain(): void {
    for (const session of [...this.#sessions]) this.#retire(session);
  }

  closeIdle(): void {
    for (const session of [...this.#sessions]) if (this.#load(session) === 0) this.#retire(session);
  }

  /** Cuts what is under way too. */
  close(): void {
    const sessions = [...this.#sessions];
    this.#sessions.clear();
    for (const session of sessions) session.destroy();
  }

  async #session(signal: AbortSignal): Promise<http2.ClientHttp2Session | undefined> {
    using _alone = await this.#dialing.acquire('session', signal);
    if (this.#offers === 'http/1') return undefined;
    return this.#withRoom() ?? (await this.#open(signal));
  }

  #withRoom(): http2.ClientHttp2Session | undefined {
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
      this.#deps.declined(socket);
      return undefined;
    }
    // Loaded when there is a use for it: not every server offers it.
    const session = process.getBuiltinModule('node:http2').connect(this.#deps.origin, {
      createConnection: () => socket,
      settings: { enablePush: false, initialWindowSize: windowBytes },
    });
    this.#sessions.add(session);
    // Each stream hears of it by itself.
    session.on('error', () => {});
    session.on('goaway', () => this.#retire(session));
    session.on('close', () => this.#sessions.delete(session));
    this.#listen(session, socket);
    return session;
  }

  /** A connection that is dead ends all it carries, which then begins anew. */
  #listen(session: http2.ClientHttp2Session, socket: TLSSocket): void {
    const { clock } = this.#deps;
    let timer: Timer;
    const look = (heard: number) => {
      timer = clock.timer(silenceMs, () => {
        // All was said, and the other side does not hang up.
        if (session.destroyed) return void socket.destroy();
        if (socket.bytesRead > heard) return look(socket.bytesRead);
        timer = clock.timer(answerMs, () => session.destroy());
        session.ping((error) => {
          timer.cancel();
          if (error === null) look(socket.bytesRead);
        });
      });
    };
    look(socket.bytesRead);
    session.once('close', () => timer.cancel());
  }

  #retire(session: http2.ClientHttp2Session): void {
    this.#sessions.delete(session);
    if (!session.destroyed) session.close();
  }

  #ask(session: http2.ClientHttp2Session, request: WireRequest, signal: AbortSignal): Promise<WireAnswer> {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted();
      const stream = this.#begin(session, request);
      const link = onAbort(signal, (reason) => {
        stream.destroy(asError(reason));
        reject(reason);
      });
      const fail = (error?: unknown) => {
        link[Symbol.dispose]();
        reject(signal.aborted ? signal.reason : brokenStream(error));
      };
      // Both stay: it may also break after the answer began, which the reader of the answer hears too.
      stream.on('error', fail);
      stream.on('close', fail);
      stream.once('response', (headers) => {
        link[Symbol.dispose]();
        resolve(answerOf(stream, headers));
      });
    });
  }

  #begin(session: http2.ClientHttp2Session, { method, path, headers }: WireRequest): http2.ClientHttp2Stream {
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
      // It ended a moment ago, and nobody has told us yet.
      this.#retire(session);
      throw brokenStream(error);
    }
  }
}

function answerOf(stream: http2.ClientHttp2Stream, headers: http2.IncomingHttpHeaders): WireAnswer {
  const { ':status': status, ...rest } = headers;
  return Object.assign(stream as Readable, { statusCode: Number(status), headers: rest });
}

/** Whatever ends a stream before its answer, the connection as a whole or the server's refusal to begin it. */
function brokenStream(error: unknown): BrokenConnection {
  const code = systemCodeOf(error);
  if (code !== undefined && !code.startsWith('ERR_HTTP2_')) return new BrokenConnection(error, 'reused');
  const why = error === undefined ? 'the stream was closed' : describeError(error);
  return new BrokenConnection(Object.assign(new Error(`HTTP/2: ${why}`), { code: 'ECONNRESET' }), 'reused');
}
