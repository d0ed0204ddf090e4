import type { NodeAddress } from '../kinds/index.ts';
import { type Clock, describeError, jitter, type Logger, type Random, withDeadline } from '../lib/index.ts';
import type { AddressProvider } from './inputs.ts';

export interface LatestAddresses {
  /** The last good answer, however old; undefined before the first. */
  readonly latest: readonly NodeAddress[] | undefined;
}

export interface PolledAddressesOptions {
  readonly provider: AddressProvider;
  readonly nodeName: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** Told when the answer is another one than before. */
  readonly changed?: () => void;
  /** 10 s unless given. */
  readonly everyMs?: number;
  /** 5 s unless given. */
  readonly deadlineMs?: number;
}

/** Asks for the node's addresses again and again, beside everything else: a slow provider holds up nobody. */
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

  /** Why the last question was not answered; undefined when it was. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** Ends only by the signal, with its reason. */
  async run(signal: AbortSignal): Promise<never> {
    const { clock, random, everyMs = 10_000 } = this.#options;
    for (;;) {
      await this.#poll(signal);
      await clock.sleep(jitter(random, everyMs, 0.04), signal);
    }
  }

  async #poll(signal: AbortSignal): Promise<void> {
    const { provider, nodeName, clock, deadlineMs: ms = 5_000 } = this.#options;
    const deadline = { clock, ms, what: `ask the address provider about ${nodeName}` };
    try {
      this.#accept(await withDeadline(deadline, (inner) => provider.addresses(nodeName, inner), signal));
    } catch (error) {
      signal.throwIfAborted();
      this.#recordFailure(describeError(error));
    }
  }

  #accept(answer: readonly NodeAddress[]): void {
    // A node without any address cannot be reached: that is no answer to act on.
    if (answer.length === 0) {
      this.#recordFailure('it knows no address');
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
    logger.warn('The address provider does not tell the addresses of the node: the last ones are kept', {
      problem,
    });
  }
}
