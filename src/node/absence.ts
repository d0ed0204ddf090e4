import type { Clock } from '../lib/index.ts';

/** A Node that is missing for a moment may be under way; one that is missing for this long was deleted. */
const patienceMs = 60_000;

/** For how long the Node has been missing. */
export class Absence {
  readonly #clock: Clock;
  #sinceMs: number | undefined;
  #isDecided = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The API server said that there is none. The verdict is given once, when it was so for long enough. */
  seen(): 'first' | 'again' | 'verdict' {
    const nowMs = this.#clock.monotonicMs();
    if (this.#sinceMs === undefined) {
      this.#sinceMs = nowMs;
      return 'first';
    }
    if (this.#isDecided || nowMs - this.#sinceMs < patienceMs) return 'again';
    this.#isDecided = true;
    return 'verdict';
  }

  over(): void {
    this.#sinceMs = undefined;
    this.#isDecided = false;
  }

  /** When to look again for the verdict to come in time; for ever when none is due. */
  untilVerdictMs(): number {
    if (this.#sinceMs === undefined || this.#isDecided) return Number.POSITIVE_INFINITY;
    return Math.max(0, this.#sinceMs + patienceMs - this.#clock.monotonicMs());
  }
}
