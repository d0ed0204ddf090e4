import {
  type BackoffPolicy,
  backoffDelayMs,
  type Clock,
  jitter,
  KubelingError,
  LruMap,
  type Random,
  withDeadline,
} from '../../lib/index.ts';
import type { User } from './identity.ts';

/** The API server's result of a TokenReview. */
export interface TokenReviewResult {
  readonly authenticated: boolean;
  readonly user?: User | undefined;
  /** Why the token review failed; undefined when it did not. */
  readonly error?: string | undefined;
}

export interface TokenReviewer {
  /** Posts one TokenReview without retries. */
  tokenReview(token: string, signal: AbortSignal): Promise<TokenReviewResult>;
}

/** What a SubjectAccessReview checks: the access of a user to the node. */
export interface AccessReviewSpec {
  readonly user: User;
  readonly verb: string;
  readonly subresource: string;
  /** Name of the node. */
  readonly name: string;
}

export interface AccessReviewResult {
  readonly allowed: boolean;
  readonly denied?: boolean | undefined;
  readonly reason?: string | undefined;
}

export interface AccessReviewer {
  /** Posts one SubjectAccessReview without retries. */
  subjectAccessReview(spec: AccessReviewSpec, signal: AbortSignal): Promise<AccessReviewResult>;
}

export interface ReviewDeps {
  readonly clock: Clock;
  readonly random: Random;
  /** Back-off between retries; by default it starts with half a second and grows by half. */
  readonly retry?: BackoffPolicy | undefined;
}

const defaultRetry: BackoffPolicy = { baseMs: 500, factor: 1.5, maxMs: 10_000, jitter: 0.2 };
const maxTries = 5;
const reviewWithinMs = 30_000;

/**
 * Posts a review and retries retryable failures. Rejects when there is no result within half a
 * minute, including all retries.
 */
export function postReview<T>(
  what: string,
  { clock, random, retry = defaultRetry }: ReviewDeps,
  call: (signal: AbortSignal) => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  const tries = async (inner: AbortSignal): Promise<T> => {
    for (let attempt = 1; ; attempt++) {
      try {
        return await call(inner);
      } catch (error) {
        if (inner.aborted || attempt === maxTries || !isRetryable(error)) throw error;
        const delayMs = jitter(random, backoffDelayMs(retry, attempt), retry.jitter ?? 0);
        await clock.sleep(Math.max(delayMs, retryAfterMs(error)), inner);
      }
    }
  };
  return withDeadline({ clock, ms: reviewWithinMs, what }, tries, signal);
}

function isRetryable(error: unknown): boolean {
  if (!(error instanceof KubelingError)) return false;
  const { code, details } = error;
  if (code === 'API_UNAVAILABLE' || code === 'API_DEADLINE' || code === 'API_TOO_MANY') return true;
  return (code === 'API_FAILED' && details?.['status'] === 500) || retryAfterMs(error) > 0;
}

function retryAfterMs(error: unknown): number {
  const after = error instanceof KubelingError ? error.details?.['retryAfterMs'] : undefined;
  return typeof after === 'number' ? after : 0;
}

interface CacheEntry<T> {
  readonly result: T;
  readonly untilMs: number;
}

const maxEntries = 8_192;

/** Caches review results; each result has its own expiry. */
export class ReviewCache<T> {
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  readonly #entries = new LruMap<string, CacheEntry<T>>({ capacity: maxEntries });

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    this.#clock = clock;
  }

  get(key: string): T | undefined {
    const cached = this.#entries.get(key);
    if (cached === undefined) return undefined;
    if (this.#clock.monotonicMs() < cached.untilMs) return cached.result;
    this.#entries.delete(key);
    return undefined;
  }

  /** Caches a result for `ms` milliseconds; zero disables caching. */
  set(key: string, result: T, ms: number): void {
    if (ms > 0) this.#entries.set(key, { result, untilMs: this.#clock.monotonicMs() + ms });
  }
}
