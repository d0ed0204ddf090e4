import { Backoff, type Clock, HintLatch, type Random } from '../../lib/index.ts';
import type { ApiClient } from '../client/client.ts';
import { isServerUnavailable, requestedDelayMs } from './reflector-recovery.ts';

/** The delay before the next attempt of a reflector. */
export interface RetryDelay {
  readonly ms: number;
  /** The delay requested by the server, which is never shortened. */
  readonly minMs: number;
}

export const noDelay: RetryDelay = { ms: 0, minMs: 0 };

export interface ReflectorBackoffOptions {
  readonly client: Pick<ApiClient, 'onReturn'>;
  readonly clock: Clock;
  readonly random: Random;
}

const policy = { baseMs: 800, factor: 2, maxMs: 30_000, jitter: 1, resetAfterMs: 120_000 };

/**
 * The back-off of a reflector: delays grow until the server responds to any client of this node.
 */
export class ReflectorBackoff {
  readonly #options: ReflectorBackoffOptions;
  readonly #backoff: Backoff;
  #lastFailure: 'away' | 'answered' = 'answered';

  constructor(options: ReflectorBackoffOptions) {
    this.#options = options;
    this.#backoff = new Backoff(policy, options.random);
  }

  after(error: unknown): RetryDelay {
    const failure = isServerUnavailable(error) ? 'away' : 'answered';
    // The server responds again, so the delays that grew while it was unreachable start over.
    if (failure === 'answered' && this.#lastFailure === 'away') this.#backoff.reset();
    this.#lastFailure = failure;
    const leastMs = requestedDelayMs(error);
    return { ms: Math.max(this.#backoff.fail(this.#options.clock.monotonicMs()), leastMs), minMs: leastMs };
  }

  /**
   * Waits for the delay, or until another request of this process gets a response from the API
   * server; rejects only with the reason of the signal.
   */
  async wait({ ms, minMs }: RetryDelay, signal: AbortSignal): Promise<void> {
    const { client, clock } = this.#options;
    const returned = new HintLatch(clock);
    using _subscription = client.onReturn?.(() => returned.raise());
    if (minMs > 0) await clock.sleep(minMs, signal);
    await returned.wait(ms - minMs, signal);
  }
}
