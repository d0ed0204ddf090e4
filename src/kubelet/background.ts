import {
  Backoff,
  type Clock,
  cancelledError,
  describeError,
  KubelingError,
  LinkedController,
  type Logger,
  type Random,
} from '../lib/index.ts';

export interface BackgroundLoop {
  /** Runs until the signal ends it; any other end is a mistake of ours. */
  run(signal: AbortSignal): Promise<void>;
}

/** By name. */
export interface BackgroundLoops {
  /** Begun again when they have ended. */
  readonly again: Readonly<Record<string, BackgroundLoop>>;
  /** Cannot be begun a second time: one that ends takes the whole with it. */
  readonly once: Readonly<Record<string, BackgroundLoop>>;
}

export interface BackgroundDeps {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
}

const pause = { baseMs: 1_000, maxMs: 60_000 };

/** Loops that run beside the main one. None of them ends unseen: it is told, shown, and begun again. */
export class Background {
  readonly #deps: BackgroundDeps;
  /** Why each loop that is down ended. */
  readonly #down = new Map<string, string>();

  constructor(deps: BackgroundDeps) {
    this.#deps = deps;
  }

  /** Which loops are down now, or undefined. */
  problem(): string | undefined {
    const down = [...this.#down].map(([name, why]) => `the loop ${name} is down: ${why}`);
    return down.length === 0 ? undefined : down.join('; ');
  }

  /**
   * Runs the work with the loops beside it, and ends them when it has ended. A loop that nothing can stand in for ends
   * the work, and what ended the loop is thrown.
   */
  async beside(
    { again, once }: BackgroundLoops,
    work: (signal: AbortSignal) => Promise<void>,
    parent: AbortSignal,
  ): Promise<void> {
    using end = new LinkedController(parent);
    const failures: unknown[] = [];
    const fail = (error: unknown) => {
      failures.push(error);
      end.abort(error);
    };
    const running = [
      ...Object.entries(once).map(([name, loop]) => this.#runOnce(name, loop, end.signal).catch(fail)),
      ...Object.entries(again).map(([name, loop]) => this.#keep(name, loop, end.signal)),
    ];
    try {
      await work(end.signal);
    } finally {
      end.abort(cancelledError('What ran beside these loops has ended'));
      await Promise.all(running);
    }
    if (failures.length > 0) throw failures[0];
  }

  async #keep(name: string, loop: BackgroundLoop, signal: AbortSignal): Promise<void> {
    const { clock, random, logger } = this.#deps;
    const backoff = new Backoff(pause, random);
    for (;;) {
      await this.#runOnce(name, loop, signal).catch(() => {});
      await clock.sleep(backoff.fail(clock.monotonicMs()), signal).catch(() => {});
      if (signal.aborted) return;
      logger.info('A background loop is begun again', { loop: name });
      this.#down.delete(name);
    }
  }

  /** Rejects unless the loop ended because it was told to. */
  async #runOnce(name: string, loop: BackgroundLoop, signal: AbortSignal): Promise<void> {
    try {
      await loop.run(signal);
      if (signal.aborted) return;
      throw new KubelingError('KUBELET_LOOP_ENDED', `The loop ${name} has ended though nobody ended it`);
    } catch (error) {
      if (signal.aborted) return;
      this.#down.set(name, describeError(error));
      this.#deps.logger.error('A background loop has ended', error, { loop: name });
      throw error;
    }
  }
}
