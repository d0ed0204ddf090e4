import { type Clock, LruMap } from '../../lib/index.ts';

interface Kept<T> {
  readonly answer: T;
  readonly untilMs: number;
}

const maxKept = 8_192;

/** What others said, each for a time of its own. */
export class KeptAnswers<T> {
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  readonly #kept = new LruMap<string, Kept<T>>({ capacity: maxKept });

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    this.#clock = clock;
  }

  get(key: string): T | undefined {
    const kept = this.#kept.get(key);
    if (kept === undefined) return undefined;
    if (this.#clock.monotonicMs() < kept.untilMs) return kept.answer;
    this.#kept.delete(key);
    return undefined;
  }

  /** For no time is not at all. */
  keep(key: string, answer: T, ms: number): void {
    if (ms > 0) this.#kept.set(key, { answer, untilMs: this.#clock.monotonicMs() + ms });
  }
}
