import { Backoff, type Clock, HintLatch, type Random } from '../../lib/index.ts';
import type { ApiClient } from '../client/client.ts';
import { askedRestMs, isAway } from './reflector-recovery.ts';

/** The delay before the next attempt. */
export interface Rest {
  readonly ms: number;
  /** Requested by the server: it is not shortened. */
  readonly leastMs: number;
}

export const noRest: Rest = { ms: 0, leastMs: 0 };

export interface FailureRestsOptions {
  readonly client: Pick<ApiClient, 'onReturn'>;
  readonly clock: Clock;
  readonly random: Random;
}

const policy = { baseMs: 800, factor: 2, maxMs: 30_000, jitter: 1, resetAfterMs: 120_000 };

/** The back-off of a reflector: growing delays until the server responds to any client. */
export class FailureRests {
  readonly #options: FailureRestsOptions;
  readonly #backoff: Backoff;
  #last: 'away' | 'answered' = 'answered';

  constructor(options: FailureRestsOptions) {
    this.#options = options;
    this.#backoff = new Backoff(policy, options.random);
  }

  after(error: unknown): Rest {
    const seen = isAway(error) ? 'away' : 'answered';
    // A recovered server with an expired version must not wait for the back-off of an unreachable
    // one.
    if (seen === 'answered' && this.#last === 'away') this.#backoff.reset();
    this.#last = seen;
    const leastMs = askedRestMs(error);
    return { ms: Math.max(this.#backoff.fail(this.#options.clock.monotonicMs()), leastMs), leastMs };
  }

  /** Ends early when other clients get responses; rejects with the signal's reason only. */
  async take({ ms, leastMs }: Rest, signal: AbortSignal): Promise<void> {
    const { client, clock } = this.#options;
    const returned = new HintLatch(clock);
    using _listening = client.onReturn?.(() => returned.raise());
    if (leastMs > 0) await clock.sleep(leastMs, signal);
    await returned.wait(ms - leastMs, signal);
  }
}
