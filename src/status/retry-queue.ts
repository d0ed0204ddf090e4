import {
  type BackoffPolicy,
  type Clock,
  KeyedBackoff,
  KubelingError,
  type Random,
  WorkQueue,
} from '../lib/index.ts';

/** A failed attempt with the key's number of failures and its back-off. */
export interface FailedTry<K> {
  readonly key: K;
  readonly error: unknown;
  /** Number of consecutive failures, at least 1. */
  readonly failures: number;
  readonly nextTryMs: number;
}

export interface RetryQueueDeps<K> {
  readonly clock: Clock;
  readonly random: Random;
  readonly policy: BackoffPolicy;
  /** Maximum number of keys processed concurrently. */
  readonly parallel: number;
  /** Processes a key; the key is retried later when it rejects. */
  readonly work: (key: K, signal: AbortSignal) => Promise<void>;
  readonly failed: (failed: FailedTry<K>) => void;
}

/**
 * Processes keys with calls to an API server that may fail: each key serially, several keys
 * concurrently, and a failed key not before its back-off expires, however often it is added.
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

  /** Number of keys that are queued or being processed. */
  get pending(): number {
    return this.#queue.waiting + this.#queue.inFlight;
  }

  /** Schedules the key after the delay, or when its back-off expires if that is later. */
  add(key: K, delayMs = 0): void {
    const waitMs = this.#backoff.remainingMs(key, { nowMs: this.#deps.clock.monotonicMs() });
    this.#queue.add(key, Math.max(delayMs, waitMs));
  }

  forget(key: K): void {
    this.#backoff.delete(key);
    this.#queue.forget(key);
  }

  /** Retries keys in back-off immediately, because the API server is reachable again. */
  reconnected(): void {
    for (const [key] of this.#backoff.entries()) {
      this.#backoff.delete(key);
      this.#queue.add(key);
    }
  }

  /** Processes keys until the signal is aborted, then rejects with its reason. Call it once. */
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
    const requestedDelayMs = error instanceof KubelingError ? Number(error.details['retryAfterMs'] ?? 0) : 0;
    const nowMs = this.#deps.clock.monotonicMs();
    const nextTryMs = Math.round(Math.max(this.#backoff.fail(key, { nowMs }), requestedDelayMs));
    this.#queue.enqueue(key, nextTryMs);
    this.#deps.failed({ key, error, failures: this.#backoff.state(key)?.failures ?? 1, nextTryMs });
  }
}
