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
  /** Runs until the signal is aborted; returning earlier is a bug. */
  run(signal: AbortSignal): Promise<void>;
}

/** The background loops by name; log messages and health checks contain the name. */
export interface BackgroundLoops {
  /** Loops that are restarted with back-off when they end. */
  readonly restartable: Readonly<Record<string, BackgroundLoop>>;
  /** Loops that cannot be restarted: when one ends, the kubelet ends. */
  readonly critical: Readonly<Record<string, BackgroundLoop>>;
}

export interface BackgroundDeps {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
}

const pause = { baseMs: 1_000, maxMs: 60_000 };

/**
 * Runs loops beside the sync loop. A loop that ends is logged, reported by `problem` and restarted.
 */
export class Background {
  readonly #deps: BackgroundDeps;
  /** The reason why each stopped loop ended, by loop name. */
  readonly #down = new Map<string, string>();

  constructor(deps: BackgroundDeps) {
    this.#deps = deps;
  }

  /** Returns which background loops are down and why, or undefined. */
  problem(): string | undefined {
    const down = [...this.#down].map(([name, why]) => `the loop ${name} is down: ${why}`);
    return down.length === 0 ? undefined : down.join('; ');
  }

  /**
   * Runs the work with the background loops beside it, and aborts the loops when the work has
   * ended. If a critical loop ends, the work is aborted and the error of the loop is thrown.
   */
  async runBeside(
    { restartable, critical }: BackgroundLoops,
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
      ...Object.entries(critical).map(([name, loop]) => this.#runOnce(name, loop, end.signal).catch(fail)),
      ...Object.entries(restartable).map(([name, loop]) => this.#runAgain(name, loop, end.signal)),
    ];
    try {
      await work(end.signal);
    } finally {
      end.abort(cancelledError('What ran beside these loops has ended'));
      await Promise.all(running);
    }
    if (failures.length > 0) throw failures[0];
  }

  async #runAgain(name: string, loop: BackgroundLoop, signal: AbortSignal): Promise<void> {
    const { clock, random, logger } = this.#deps;
    const backoff = new Backoff(pause, random);
    for (;;) {
      await this.#runOnce(name, loop, signal).catch(() => {});
      await clock.sleep(backoff.fail(clock.monotonicMs()), signal).catch(() => {});
      if (signal.aborted) return;
      logger.info('Restarting background loop', { loop: name });
      this.#down.delete(name);
    }
  }

  /** Runs the loop until its signal is aborted; rejects when it ends for another reason. */
  async #runOnce(name: string, loop: BackgroundLoop, signal: AbortSignal): Promise<void> {
    try {
      await loop.run(signal);
      if (signal.aborted) return;
      throw new KubelingError('KUBELET_LOOP_ENDED', `Background loop ${name} ended unexpectedly`);
    } catch (error) {
      if (signal.aborted) return;
      this.#down.set(name, describeError(error));
      this.#deps.logger.error('Background loop ended', error, { loop: name });
      throw error;
    }
  }
}
