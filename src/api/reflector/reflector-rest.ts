import { Backoff, type Clock, HintLatch, type Random } from '../../lib/index.ts';
import type { ApiClient } from '../client/client.ts';
import { askedRestMs, isAway } from './reflector-recovery.ts';

/** How long to wait before the next try. */
export interface Rest {
  readonly ms: number;
  /** As the server asked for: it is not cut short. */
  readonly leastMs: number;
}

export const noRest: Rest = { ms: 0, leastMs: 0 };

export interface FailureRestsOptions {
  readonly client: Pick<ApiClient, 'onReturn'>;
  readonly clock: Clock;
  readonly random: Random;
}

const policy = { baseMs: 800, factor: 2, maxMs: 30_000, jitter: 1, resetAfterMs: 120_000 };

/** The rests of a reflector after failures: ever longer ones, until the server is heard of again. */
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
    // A server that is back and has forgotten our version should not be waited for as if it were still away.
    if (seen === 'answered' && this.#last === 'away') this.#backoff.reset();
    this.#last = seen;
    const leastMs = askedRestMs(error);
    return { ms: Math.max(this.#backoff.fail(this.#options.clock.monotonicMs()), leastMs), leastMs };
  }

  /** Ends early when others were answered; rejects for no other reason than the signal's. */
  async take({ ms, leastMs }: Rest, signal: AbortSignal): Promise<void> {
    const { client, clock } = this.#options;
    const returned = new HintLatch(clock);
    using _listening = client.onReturn?.(() => returned.raise());
    if (leastMs > 0) await clock.sleep(leastMs, signal);
    await returned.wait(ms - leastMs, signal);
  }
}
