import { type Clock, KubelingError, Waiters } from '../../lib/index.ts';

/** A client-side rate limit. */
export type RateLimit =
  | { readonly kind: 'unlimited' }
  | { readonly kind: 'limited'; readonly qps: number; readonly burst: number };

/** The default rate and burst, used if 0 is configured. */
const usualQps = 5;
const usualBurst = 10;

/** Reads the configured rate: 0 means the default of 5 per second, negative values are rejected. */
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
 * A token bucket that fills with `qps` per second up to `burst`. Waiting requests are admitted in
 * order.
 */
export class RequestRate {
  readonly #clock: Clock;
  #limit: RateLimit;
  /** The time at which the bucket will be full if no further request takes a token. */
  #fullMs = Number.NEGATIVE_INFINITY;

  constructor(limit: RateLimit, clock: Clock) {
    this.#limit = limit;
    this.#clock = clock;
  }

  /** Sets a new limit for later requests; requests that already wait keep their time. */
  setLimit(limit: RateLimit): void {
    this.#limit = limit;
  }

  /**
   * Resolves when a request may be sent. If the signal aborts, the token is returned to the bucket.
   */
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

/**
 * Limits the number of requests in flight of a client, so that an unresponsive server cannot use up
 * all sockets.
 */
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
    return { [Symbol.dispose]: () => this.#release() };
  }

  #release(): void {
    if (!this.#line.resolveFirst()) this.#free++;
  }
}
