import { Backoff, type Clock, type Random, type Timer } from '../../lib/index.ts';

export interface ServerGateOptions {
  readonly clock: Clock;
  readonly random: Random;
  /** The maximum number of concurrent calls while the server is reachable. */
  readonly width: number;
  /** Called when another call may start. */
  readonly onOpen: () => void;
}

/**
 * The back-off of probes while the server is unreachable. Its maximum limits how late events are
 * sent after the server is reachable again.
 */
const policy = { baseMs: 1_000, factor: 2, maxMs: 10_000, jitter: 0.5 };

/**
 * Limits concurrent calls to a server. While the server is unreachable, blocks all calls except one
 * probe at a time, with growing delays.
 */
export class ServerGate implements Disposable {
  readonly #options: ServerGateOptions;
  readonly #backoff: Backoff;
  #timer: Timer | undefined;
  #state: 'open' | 'closed' = 'open';
  #responses = 0;

  constructor(options: ServerGateOptions) {
    this.#options = options;
    this.#backoff = new Backoff(policy, options.random);
  }

  /** The number of responses received from the server. */
  get responses(): number {
    return this.#responses;
  }

  /** The number of calls that may be in flight now. */
  get width(): number {
    if (this.#state === 'open') return this.#options.width;
    return this.#timer === undefined ? 1 : 0;
  }

  succeeded(): void {
    this.#responses++;
    this.#state = 'open';
    this.#backoff.reset();
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  failed(): void {
    this.#state = 'closed';
    if (this.#timer !== undefined) return;
    const { clock, onOpen } = this.#options;
    this.#timer = clock.timer(this.#backoff.fail(clock.monotonicMs()), () => {
      this.#timer = undefined;
      onOpen();
    });
  }

  [Symbol.dispose](): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }
}
