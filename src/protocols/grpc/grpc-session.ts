import type { Clock } from '../../lib/index.ts';
import { abortable, describeError, jitter, type Random } from '../../lib/index.ts';
import { type Address, type ClientConnection, dialHttp2 } from '../http2/index.ts';
import { GrpcError } from './status.ts';

export interface ConnectionOptions {
  /** The address of the server: `unix:///path` or `host:port`. */
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
 * Nothing runs in the background: a call made while resting fails immediately with the last error, the
 * first call after the back-off connects again. So an unreachable peer costs nothing, and no caller
 * waits for a timer to find it reachable again.
 */
type State =
  | { readonly is: 'idle' }
  | { readonly is: 'connecting'; readonly attempt: Promise<ClientConnection> }
  | { readonly is: 'ready'; readonly session: ClientConnection }
  | { readonly is: 'resting'; readonly untilMs: number; readonly why: string }
  | { readonly is: 'closed' };

/** One HTTP/2 session that is opened when needed and reopened after it broke. */
export class GrpcSession {
  readonly #options: ConnectionOptions;
  /**
   * Every session that is not closed: the one in use or being opened, and those that received
   * GOAWAY and still have streams.
   */
  readonly #sessions = new Set<ClientConnection>();
  #state: State = { is: 'idle' };
  #failures = 0;

  constructor(options: ConnectionOptions) {
    this.#options = options;
  }

  /**
   * The current session. Rejects with UNAVAILABLE when none can be opened, or with the signal's
   * reason. Callers share one connection attempt, which continues when one of them aborts.
   */
  session(signal: AbortSignal): ClientConnection | Promise<ClientConnection> {
    const state = this.#state;
    if (state.is === 'ready' && state.session.isUsable) return state.session;
    if (state.is === 'connecting') return abortable(state.attempt, signal);
    if (state.is === 'closed') throw closed();
    if (state.is === 'resting' && this.#options.clock.monotonicMs() < state.untilMs) {
      throw new GrpcError('UNAVAILABLE', state.why);
    }
    const attempt = this.#connect();
    this.#state = { is: 'connecting', attempt };
    return abortable(attempt, signal);
  }

  /** Closes every session and its calls, and aborts a connection attempt; later calls fail. */
  close(): void {
    this.#state = { is: 'closed' };
    for (const session of this.#sessions) session.close(closed());
  }

  async #connect(): Promise<ClientConnection> {
    try {
      const session = await this.#open();
      if (this.#state.is === 'closed') throw closed();
      // The session may have ended, or received GOAWAY, while it was being opened.
      if (!session.isUsable) throw closedEarly();
      this.#failures = 0;
      this.#state = { is: 'ready', session };
      return session;
    } catch (error) {
      throw this.#backOff(error);
    }
  }

  /**
   * A session is ready when the peer's SETTINGS have arrived: a connected socket may belong to a
   * listener that never accepts it.
   */
  #open(): Promise<ClientConnection> {
    return new Promise((resolve, reject) => {
      const session = dialHttp2(addressOf(this.#options.target), {
        ready: () => {
          timer.cancel();
          resolve(session);
        },
        draining: () => this.#remove(session),
        ended: (error) => {
          timer.cancel();
          this.#sessions.delete(session);
          this.#remove(session);
          reject(error ?? closedEarly());
        },
      });
      this.#sessions.add(session);
      const timer = this.#options.clock.timer(this.#options.connectTimeoutMs, () =>
        session.close(new Error(`no reply within ${this.#options.connectTimeoutMs} ms`)),
      );
    });
  }

  #remove(session: ClientConnection): void {
    if (this.#state.is === 'ready' && this.#state.session === session) this.#state = { is: 'idle' };
  }

  #backOff(error: unknown): GrpcError {
    if (this.#state.is === 'closed') return closed();
    const { baseBackoffMs, maxBackoffMs, clock, random, target } = this.#options;
    const delay = Math.min(maxBackoffMs, baseBackoffMs * 2 ** this.#failures);
    this.#failures = Math.min(this.#failures + 1, 30);
    const why = `Cannot connect to ${target}: ${describeError(error)}`;
    this.#state = { is: 'resting', untilMs: clock.monotonicMs() + jitter(random, delay * 0.9, 0.2), why };
    return new GrpcError('UNAVAILABLE', why, error);
  }
}

function closed(): GrpcError {
  return new GrpcError('CANCELLED', 'The client was closed');
}

function closedEarly(): Error {
  return new Error('the connection was closed while it was being opened');
}

function addressOf(target: string): Address {
  if (target.startsWith('unix://')) return { path: target.slice('unix://'.length) };
  const { hostname, port } = new URL(`tcp://${target}`);
  return { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port) };
}
