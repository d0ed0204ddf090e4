import { type Clock, onAbort } from '../lib/index.ts';

/** A number of places, handed on in the order they were asked for. */
export class PullSlots {
  #free: number;
  readonly #line = new Map<string, () => void>();

  constructor(count: number) {
    this.#free = count;
  }

  get waiting(): number {
    return this.#line.size;
  }

  /** Counted from 1; undefined for who does not wait. */
  placeOf(who: string): number | undefined {
    const at = [...this.#line.keys()].indexOf(who);
    return at < 0 ? undefined : at + 1;
  }

  /** `who` has at most one place in the line. */
  async take(who: string, signal: AbortSignal): Promise<Disposable> {
    signal.throwIfAborted();
    if (this.#free > 0) this.#free--;
    else await this.#wait(who, signal);
    return { [Symbol.dispose]: () => this.#giveBack() };
  }

  #wait(who: string, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const go = () => {
        link[Symbol.dispose]();
        resolve();
      };
      this.#line.set(who, go);
      const link = onAbort(signal, (reason) => {
        this.#line.delete(who);
        reject(reason);
      });
    });
  }

  #giveBack(): void {
    const [next] = this.#line;
    if (next === undefined) {
      this.#free++;
      return;
    }
    const [who, go] = next;
    this.#line.delete(who);
    go();
  }
}

export interface RateLimits {
  /** 0 for any number. */
  readonly qps: number;
  readonly burst: number;
}

/** A bucket that fills with `qps` a second up to `burst`. */
export class PullRate {
  readonly #limits: RateLimits;
  readonly #clock: Clock;
  #tokens: number;
  #lastMs: number;

  constructor(limits: RateLimits, clock: Clock) {
    this.#limits = limits;
    this.#clock = clock;
    this.#tokens = limits.burst;
    this.#lastMs = clock.monotonicMs();
  }

  take(): boolean {
    const { qps, burst } = this.#limits;
    if (qps <= 0) return true;
    const nowMs = this.#clock.monotonicMs();
    this.#tokens = Math.min(burst, this.#tokens + ((nowMs - this.#lastMs) / 1_000) * qps);
    this.#lastMs = nowMs;
    if (this.#tokens < 1) return false;
    this.#tokens--;
    return true;
  }
}
