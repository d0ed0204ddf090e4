import { type ClientHttp2Session, connect } from 'node:http2';
import { connect as connectSocket, type Socket } from 'node:net';
import type { Clock } from '../clock.ts';
import { describeError } from '../errors.ts';
import { jitter, type Random } from '../random.ts';
import { GrpcError } from './status.ts';

export interface ConnectionOptions {
  /** `unix:///path` or `host:port`. */
  readonly target: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly baseBackoffMs: number;
  readonly maxBackoffMs: number;
  readonly connectTimeoutMs: number;
}

/*
 *            session() called
 *   idle ───────────────────────> connecting ──> ready
 *    ^                                │            │
 *    │ back-off over, next call       │ failed     │ closed, GOAWAY, error
 *    └──────── resting <──────────────┘            │
 *    └─────────────────────────────────────────────┘
 *
 * Nothing runs in the background: a call made while resting fails at once with the last reason, the first one after
 * it connects again. So a dead peer costs nothing, and nobody waits on a timer to see it return.
 */
type State =
  | { readonly is: 'idle' }
  | { readonly is: 'connecting'; readonly session: Promise<ClientHttp2Session> }
  | { readonly is: 'ready'; readonly session: ClientHttp2Session }
  | { readonly is: 'resting'; readonly untilMs: number; readonly why: string }
  | { readonly is: 'closed' };

/** One HTTP/2 session that is made when needed and made again when it broke. */
export class Connection {
  readonly #options: ConnectionOptions;
  #state: State = { is: 'idle' };
  #failures = 0;

  constructor(options: ConnectionOptions) {
    this.#options = options;
  }

  /** The session to use now; rejects with UNAVAILABLE when there is none to be had. */
  async session(): Promise<ClientHttp2Session> {
    const state = this.#state;
    if (state.is === 'ready') return state.session;
    if (state.is === 'connecting') return await state.session;
    if (state.is === 'closed') throw new GrpcError('CANCELLED', 'The client was closed');
    if (state.is === 'resting' && this.#options.clock.monotonicMs() < state.untilMs) {
      throw new GrpcError('UNAVAILABLE', state.why);
    }
    const session = this.#connect();
    this.#state = { is: 'connecting', session };
    return await session;
  }

  /** Ends the session and every call on it; later calls fail. */
  close(): void {
    const state = this.#state;
    this.#state = { is: 'closed' };
    if (state.is === 'ready') state.session.destroy();
    if (state.is === 'connecting') {
      state.session.then(
        (session) => session.destroy(),
        () => {},
      );
    }
  }

  async #connect(): Promise<ClientHttp2Session> {
    try {
      const session = await this.#open();
      if (this.#state.is === 'closed') {
        session.destroy();
        throw new GrpcError('CANCELLED', 'The client was closed');
      }
      this.#failures = 0;
      this.#watch(session);
      this.#state = { is: 'ready', session };
      return session;
    } catch (error) {
      throw this.#rest(error);
    }
  }

  /** A session is ready once the peer's settings arrived: a socket alone may be one that nobody accepts on. */
  #open(): Promise<ClientHttp2Session> {
    return new Promise((resolve, reject) => {
      const session = connect('http://localhost', {
        createConnection: () => dial(this.#options.target),
        settings: { enablePush: false, initialWindowSize: 1 << 20 },
        maxSessionMemory: 64,
      });
      const timer = this.#options.clock.timer(this.#options.connectTimeoutMs, () =>
        session.destroy(new Error(`no answer within ${this.#options.connectTimeoutMs} ms`)),
      );
      const fail = (error?: Error) => {
        timer.cancel();
        reject(error ?? new Error('the connection was closed while it was being made'));
      };
      session.once('error', fail);
      session.once('close', fail);
      session.once('remoteSettings', () => {
        timer.cancel();
        session.off('close', fail);
        session.off('error', fail);
        session.setLocalWindowSize(4 << 20);
        resolve(session);
      });
    });
  }

  #watch(session: ClientHttp2Session): void {
    const leave = () => {
      if (this.#state.is === 'ready' && this.#state.session === session) this.#state = { is: 'idle' };
    };
    // Streams report their own errors; without a listener the session's would end the process.
    session.on('error', leave);
    session.on('close', leave);
    session.on('goaway', leave);
  }

  #rest(error: unknown): GrpcError {
    if (error instanceof GrpcError) return error;
    const { baseBackoffMs, maxBackoffMs, clock, random, target } = this.#options;
    const delay = Math.min(maxBackoffMs, baseBackoffMs * 2 ** this.#failures);
    this.#failures = Math.min(this.#failures + 1, 30);
    const why = `Cannot connect to ${target}: ${describeError(error)}`;
    if (this.#state.is !== 'closed') {
      this.#state = { is: 'resting', untilMs: clock.monotonicMs() + jitter(random, delay * 0.9, 0.2), why };
    }
    return new GrpcError('UNAVAILABLE', why, error);
  }
}

function dial(target: string): Socket {
  if (target.startsWith('unix://')) return connectSocket(target.slice('unix://'.length));
  const colon = target.lastIndexOf(':');
  return connectSocket(Number(target.slice(colon + 1)), target.slice(0, colon));
}
