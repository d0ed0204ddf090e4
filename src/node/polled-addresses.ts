import type { NodeAddress } from '../kinds/index.ts';
import { type Clock, describeError, jitter, type Logger, type Random, withDeadline } from '../lib/index.ts';
import type { AddressProvider } from './inputs.ts';

export interface LatestAddresses {
  /** The last good result; undefined before the first. */
  readonly latest: readonly NodeAddress[] | undefined;
}

export interface PolledAddressesOptions {
  readonly provider: AddressProvider;
  readonly nodeName: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** Called when the result has changed. */
  readonly changed?: () => void;
  /** 10 s by default. */
  readonly everyMs?: number;
  /** 5 s by default. */
  readonly deadlineMs?: number;
}

/** Polls the address provider in the background, so that a slow provider blocks nothing. */
export class PolledAddresses implements LatestAddresses {
  readonly #options: PolledAddressesOptions;
  #latest: readonly NodeAddress[] | undefined;
  #problem: string | undefined;

  constructor(options: PolledAddressesOptions) {
    this.#options = options;
  }

  get latest(): readonly NodeAddress[] | undefined {
    return this.#latest;
  }

  /** Why the last call failed; undefined when it succeeded. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** Rejects with the signal's reason only. */
  async run(signal: AbortSignal): Promise<never> {
    const { clock, random, everyMs = 10_000 } = this.#options;
    for (;;) {
      await this.#poll(signal);
      await clock.sleep(jitter(random, everyMs, 0.04), signal);
    }
  }

  async #poll(signal: AbortSignal): Promise<void> {
    const { provider, nodeName, clock, deadlineMs: ms = 5_000 } = this.#options;
    const deadline = { clock, ms, what: `get the addresses of ${nodeName} from the address provider` };
    try {
      this.#accept(await withDeadline(deadline, (inner) => provider.addresses(nodeName, inner), signal));
    } catch (error) {
      signal.throwIfAborted();
      this.#recordFailure(describeError(error));
    }
  }

  #accept(answer: readonly NodeAddress[]): void {
    // A node without any address is unreachable, so an empty result is an error.
    if (answer.length === 0) {
      this.#recordFailure('it returned no address');
      return;
    }
    this.#problem = undefined;
    const isNew = JSON.stringify(answer) !== JSON.stringify(this.#latest);
    this.#latest = answer;
    if (isNew) this.#options.changed?.();
  }

  #recordFailure(problem: string): void {
    if (this.#problem === problem) return;
    this.#problem = problem;
    const { logger } = this.#options;
    logger.warn('Failed to get node addresses from the address provider, keeping the last ones', {
      problem,
    });
  }
}
