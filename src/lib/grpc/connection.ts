import { type ClientHttp2Session, connect, constants } from 'node:http2';
import { connect as connectSocket, type Socket } from 'node:net';
import { abortable } from '../abort.ts';
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
  | { readonly is: 'connecting'; readonly attempt: Promise<ClientHttp2Session> }
  | { readonly is: 'ready'; readonly session: ClientHttp2Session }
  | { readonly is: 'resting'; readonly untilMs: number; readonly why: string }
  | { readonly is: 'closed' };

/** Trailers carry the runtime's error messages, and those may be long. */
const maxHeaderBytes = 1 << 20;

/** One HTTP/2 session that is made when needed and made again when it broke. */
export class Connection {
  readonly #options: ConnectionOptions;
  /** Every session not yet closed: the one in use or being made, and those the peer asked to leave. */
  readonly #sessions = new Set<ClientHttp2Session>();
  #state: State = { is: 'idle' };
  #failures = 0;

  constructor(options: ConnectionOptions) {
    this.#options = options;
  }

  /**
   * The session to use now; rejects with UNAVAILABLE when there is none to be had, or with the signal's reason.
   * Callers share one attempt to connect, which goes on when one of them gives up.
   */
  session(signal: AbortSignal): ClientHttp2Session | Promise<ClientHttp2Session> {
    const state = this.#state;
    if (state.is === 'ready' && isUsable(state.session)) return state.session;
    if (state.is === 'connecting') return abortable(state.attempt, signal);
    if (state.is === 'closed') throw closed();
    if (state.is === 'resting' && this.#options.clock.monotonicMs() < state.untilMs) {
      throw new GrpcError('UNAVAILABLE', state.why);
    }
    const attempt = this.#connect();
    this.#state = { is: 'connecting', attempt };
    return abortable(attempt, signal);
  }

  /** Ends every session, every call on them and any attempt to connect; later calls fail. */
  close(): void {
    this.#state = { is: 'closed' };
    for (const session of this.#sessions) session.destroy(closed(), constants.NGHTTP2_CANCEL);
  }

  async #connect(): Promise<ClientHttp2Session> {
    try {
      const session = await this.#open();
      if (this.#state.is === 'closed') throw closed();
      this.#failures = 0;
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
        settings: { enablePush: false, initialWindowSize: 1 << 20, maxHeaderListSize: maxHeaderBytes },
        maxSessionMemory: 64,
      });
      this.#sessions.add(session);
      const timer = this.#options.clock.timer(this.#options.connectTimeoutMs, () =>
        session.destroy(new Error(`no answer within ${this.#options.connectTimeoutMs} ms`)),
      );
      session.once('remoteSettings', () => {
        timer.cancel();
        // The event comes a moment after the settings, and the session may have ended meanwhile.
        if (session.destroyed) return;
        session.setLocalWindowSize(4 << 20);
        resolve(session);
      });
      // For the life of the session: its streams report what broke them, but an error nobody hears ends the process.
      session.on('error', reject);
      session.on('goaway', () => this.#forget(session));
      session.on('close', () => {
        timer.cancel();
        this.#sessions.delete(session);
        this.#forget(session);
        reject(new Error('the connection was closed while it was being made'));
      });
    });
  }

  #forget(session: ClientHttp2Session): void {
    if (this.#state.is === 'ready' && this.#state.session === session) this.#state = { is: 'idle' };
  }

  #rest(error: unknown): GrpcError {
    if (this.#state.is === 'closed') return closed();
    const { baseBackoffMs, maxBackoffMs, clock, random, target } = this.#options;
    const delay = Math.min(maxBackoffMs, baseBackoffMs * 2 ** this.#failures);
    this.#failures = Math.min(this.#failures + 1, 30);
    const why = `Cannot connect to ${target}: ${describeError(error)}`;
    this.#state = { is: 'resting', untilMs: clock.monotonicMs() + jitter(random, delay * 0.9, 0.2), why };
    return new GrpcError('UNAVAILABLE', why, error);
  }
}

/** A session may end between two events; one that has is of no use to a new call. */
function isUsable(session: ClientHttp2Session): boolean {
  return !session.closed && !session.destroyed;
}

function closed(): GrpcError {
  return new GrpcError('CANCELLED', 'The client was closed');
}

function dial(target: string): Socket {
  if (target.startsWith('unix://')) return connectSocket(target.slice('unix://'.length));
  const { hostname, port } = new URL(`tcp://${target}`);
  return connectSocket(Number(port), hostname.replace(/^\[|\]$/g, ''));
}
