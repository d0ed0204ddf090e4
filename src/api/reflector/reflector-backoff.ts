import { Backoff, type Clock, HintLatch, type Random } from '../../lib/index.ts';
import type { ApiClient } from '../client/client.ts';
import { isServerUnavailable, requestedDelayMs } from './reflector-recovery.ts';

/** The delay before the next attempt. */
export interface RetryDelay {
  readonly ms: number;
  /** Requested by the server: it is not shortened. */
  readonly minMs: number;
}

export const noDelay: RetryDelay = { ms: 0, minMs: 0 };

export interface ReflectorBackoffOptions {
  readonly client: Pick<ApiClient, 'onReturn'>;
  readonly clock: Clock;
  readonly random: Random;
}

const policy = { baseMs: 800, factor: 2, maxMs: 30_000, jitter: 1, resetAfterMs: 120_000 };

/** The back-off of a reflector: growing delays until the server responds to any client. */
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
    // A recovered server with an expired version must not wait for the back-off of an unreachable
    // one.
    if (failure === 'answered' && this.#lastFailure === 'away') this.#backoff.reset();
    this.#lastFailure = failure;
    const leastMs = requestedDelayMs(error);
    return { ms: Math.max(this.#backoff.fail(this.#options.clock.monotonicMs()), leastMs), minMs: leastMs };
  }

  /** Ends early when other clients get responses; rejects with the signal's reason only. */
  async wait({ ms, minMs }: RetryDelay, signal: AbortSignal): Promise<void> {
    const { client, clock } = this.#options;
    const returned = new HintLatch(clock);
    using _subscription = client.onReturn?.(() => returned.raise());
    if (minMs > 0) await clock.sleep(minMs, signal);
    await returned.wait(ms - minMs, signal);
  }
}
