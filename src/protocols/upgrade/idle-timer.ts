import type { Clock, Timer } from '../../lib/index.ts';

/**
 * Calls back once when `touch` was not called for some time. A call of `touch` is cheap: it only
 * stores the time, which is compared when the timer fires.
 */
export class IdleTimer implements Disposable {
  readonly #clock: Clock;
  readonly #expired: () => void;
  #limitMs: number;
  #lastMs: number;
  #timer: Timer | undefined;

  /** Starts the timer; a limit of 0 means no limit. */
  constructor(clock: Clock, limitMs: number, expired: () => void) {
    this.#clock = clock;
    this.#limitMs = limitMs;
    this.#expired = expired;
    this.#lastMs = clock.monotonicMs();
    this.#arm();
  }

  touch(): void {
    this.#lastMs = this.#clock.monotonicMs();
  }

  /** Sets a limit that starts now; a limit can only become shorter. */
  shorten(limitMs: number): void {
    if (this.#limitMs !== 0 && this.#limitMs <= limitMs) return;
    this.#limitMs = limitMs;
    this.touch();
    this.#arm();
  }

  [Symbol.dispose](): void {
    this.#timer?.cancel();
    this.#limitMs = 0;
  }

  #arm(): void {
    this.#timer?.cancel();
    if (this.#limitMs === 0) return;
    const leftMs = this.#lastMs + this.#limitMs - this.#clock.monotonicMs();
    this.#timer = this.#clock.timer(leftMs, () => {
      if (this.#clock.monotonicMs() - this.#lastMs >= this.#limitMs) this.#expired();
      else this.#arm();
    });
  }
}
