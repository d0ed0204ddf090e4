import type { Clock, Timer } from '../lib/index.ts';

interface Pause {
  readonly timer: Timer;
  isAsked: boolean;
}

/**
 * Does something for each key as soon as it is asked for, and then not again before a pause has passed, however often it
 * is asked for meanwhile: what is asked for in the pause is done once, at its end.
 */
export class Paced<K extends string = string> implements Disposable {
  readonly #clock: Clock;
  readonly #pauseMs: number;
  readonly #act: (key: K) => void;
  readonly #pauses = new Map<K, Pause>();

  constructor(clock: Clock, pauseMs: number, act: (key: K) => void) {
    this.#clock = clock;
    this.#pauseMs = pauseMs;
    this.#act = act;
  }

  /** Keys that something was done for within the pause. */
  get size(): number {
    return this.#pauses.size;
  }

  ask(key: K): void {
    const pause = this.#pauses.get(key);
    if (pause === undefined) this.#do(key);
    else pause.isAsked = true;
  }

  /** Nothing that was asked for is done any more. */
  [Symbol.dispose](): void {
    for (const { timer } of this.#pauses.values()) timer.cancel();
    this.#pauses.clear();
  }

  #do(key: K): void {
    const timer = this.#clock.timer(this.#pauseMs, () => this.#end(key));
    this.#pauses.set(key, { timer, isAsked: false });
    this.#act(key);
  }

  #end(key: K): void {
    const isAsked = this.#pauses.get(key)?.isAsked === true;
    this.#pauses.delete(key);
    if (isAsked) this.#do(key);
  }
}
