import { type Clock, KubelingError, Waiters } from '../../lib/index.ts';

/** How often a client may ask. */
export type RateLimit =
  | { readonly kind: 'unlimited' }
  | { readonly kind: 'limited'; readonly qps: number; readonly burst: number };

/** What 0 stands for. */
const usualQps = 5;
const usualBurst = 10;

/** As configuration has it: 0 means the usual 5 a second, and what is below 0 is refused. */
export function rateLimitOf(qps: number, burst: number): RateLimit {
  for (const [name, value] of [
    ['the rate', qps],
    ['the burst', burst],
  ] as const) {
    if (value >= 0) continue;
    const message = `Cannot limit requests to the API server as ${name} must not be negative: current value is ${value}`;
    throw new KubelingError('CONFIG_INVALID', message);
  }
  const effective = qps === 0 ? usualQps : qps;
  return { kind: 'limited', qps: effective, burst: burst === 0 ? Math.max(usualBurst, effective) : burst };
}

/**
 * A bucket that fills with `qps` a second up to `burst`. Who finds it empty gets a time of its own in the order of
 * asking, so that nobody is overtaken.
 */
export class RequestRate {
  readonly #clock: Clock;
  #limit: RateLimit;
  /** When the bucket will be full again, if nobody takes more. */
  #fullMs = Number.NEGATIVE_INFINITY;

  constructor(limit: RateLimit, clock: Clock) {
    this.#limit = limit;
    this.#clock = clock;
  }

  /** From now on; who waits already waits as long as was said. */
  setLimit(limit: RateLimit): void {
    this.#limit = limit;
  }

  /** Resolves when one may ask. Who gives up while waiting gives the token back. */
  async take(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#limit.kind === 'unlimited') return;
    const { qps, burst } = this.#limit;
    const eachMs = 1_000 / qps;
    const nowMs = this.#clock.monotonicMs();
    this.#fullMs = Math.max(this.#fullMs, nowMs) + eachMs;
    const waitMs = this.#fullMs - nowMs - burst * eachMs;
    if (waitMs > 0) await this.#wait(waitMs, eachMs, signal);
  }

  async #wait(waitMs: number, eachMs: number, signal: AbortSignal): Promise<void> {
    try {
      await this.#clock.sleep(waitMs, signal);
    } catch (error) {
      this.#fullMs -= eachMs;
      throw error;
    }
  }
}

/** How many requests a client may have under way, so that a silent server cannot take all sockets of the machine. */
export class RequestSlots {
  readonly #line = new Waiters<void>();
  #free: number;

  constructor(count: number) {
    this.#free = count;
  }

  async take(signal: AbortSignal): Promise<Disposable> {
    signal.throwIfAborted();
    if (this.#free > 0) this.#free--;
    else await this.#line.wait(signal);
    return { [Symbol.dispose]: () => this.#giveBack() };
  }

  #giveBack(): void {
    if (!this.#line.resolveFirst()) this.#free++;
  }
}
