import {
  type BackoffPolicy,
  type Clock,
  KeyedBackoff,
  KubelingError,
  type Random,
  WorkQueue,
} from '../lib/index.ts';

/** A try that failed, and what follows from it. */
export interface FailedTry<K> {
  readonly key: K;
  readonly error: unknown;
  /** In a row, from 1. */
  readonly failures: number;
  readonly nextTryMs: number;
}

export interface RetryQueueDeps<K> {
  readonly clock: Clock;
  readonly random: Random;
  readonly policy: BackoffPolicy;
  /** How many keys are worked on at a time. */
  readonly parallel: number;
  /** Does what there is to do for a key. One that fails is tried again later. */
  readonly work: (key: K, signal: AbortSignal) => Promise<void>;
  readonly failed: (failed: FailedTry<K>) => void;
}

/**
 * Keys to be worked on against an API that may fail: each by one at a time, several keys beside each other, and one that
 * has failed not again before its time, however often it is asked for meanwhile.
 */
export class RetryQueue<K extends string> {
  readonly #deps: RetryQueueDeps<K>;
  readonly #queue: WorkQueue<K>;
  readonly #backoff: KeyedBackoff<K>;

  constructor(deps: RetryQueueDeps<K>) {
    this.#deps = deps;
    this.#queue = new WorkQueue(deps.clock);
    this.#backoff = new KeyedBackoff({ policy: deps.policy, random: deps.random });
  }

  /** Keys that wait or are worked on. */
  get pending(): number {
    return this.#queue.waiting + this.#queue.inFlight;
  }

  /** Asks for the key within so much time, or when it may be tried again. */
  add(key: K, delayMs = 0): void {
    const waitMs = this.#backoff.remainingMs(key, { nowMs: this.#deps.clock.monotonicMs() });
    this.#queue.add(key, Math.max(delayMs, waitMs));
  }

  forget(key: K): void {
    this.#backoff.delete(key);
    this.#queue.forget(key);
  }

  /** The API answers again: what waits because of failures need not wait any longer. */
  reconnected(): void {
    for (const [key] of this.#backoff.entries()) {
      this.#backoff.delete(key);
      this.#queue.add(key);
    }
  }

  /** Works until it is aborted, and then throws the signal's reason. Call it once. */
  async run(signal: AbortSignal): Promise<void> {
    using _queue = this.#queue;
    await Promise.all(Array.from({ length: this.#deps.parallel }, () => this.#workAll(signal)));
  }

  async #workAll(signal: AbortSignal): Promise<void> {
    for (;;) {
      const key = await this.#queue.next(signal);
      if (key === undefined) return;
      try {
        await this.#deps.work(key, signal);
        this.#backoff.delete(key);
      } catch (error) {
        signal.throwIfAborted();
        this.#failed(key, error);
      } finally {
        this.#queue.done(key);
      }
    }
  }

  #failed(key: K, error: unknown): void {
    const toldMs = error instanceof KubelingError ? Number(error.details['retryAfterMs'] ?? 0) : 0;
    const nowMs = this.#deps.clock.monotonicMs();
    const nextTryMs = Math.round(Math.max(this.#backoff.fail(key, { nowMs }), toldMs));
    this.#queue.enqueue(key, nextTryMs);
    this.#deps.failed({ key, error, failures: this.#backoff.state(key)?.failures ?? 1, nextTryMs });
  }
}
