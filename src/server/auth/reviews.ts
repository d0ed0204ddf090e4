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

/** The API server's review of a token. */
export interface TokenReviewResult {
  readonly authenticated: boolean;
  readonly user?: User | undefined;
  /** Why the review failed. */
  readonly error?: string | undefined;
}

export interface TokenReviewer {
  /** Sends one review without retries. */
  tokenReview(token: string, signal: AbortSignal): Promise<TokenReviewResult>;
}

/** The access of a user to the node under review. */
export interface AccessReviewSpec {
  readonly user: User;
  readonly verb: string;
  readonly subresource: string;
  /** Subresource of the node. */
  readonly name: string;
}

export interface AccessReviewResult {
  readonly allowed: boolean;
  readonly denied?: boolean | undefined;
  readonly reason?: string | undefined;
}

export interface AccessReviewer {
  /** Sends one review without retries. */
  subjectAccessReview(spec: AccessReviewSpec, signal: AbortSignal): Promise<AccessReviewResult>;
}

export interface ReviewDeps {
  readonly clock: Clock;
  readonly random: Random;
  /** Back-off between retries; by default half a second, growing by half. */
  readonly retry?: BackoffPolicy | undefined;
}

const defaultRetry: BackoffPolicy = { baseMs: 500, factor: 1.5, maxMs: 10_000, jitter: 0.2 };
const maxTries = 5;
const reviewWithinMs = 30_000;

/** Sends a review and retries retryable failures. Concurrent callers share the result only. */
export function postReview<T>(
  what: string,
  { clock, random, retry = defaultRetry }: ReviewDeps,
  ask: (signal: AbortSignal) => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  const tries = async (inner: AbortSignal): Promise<T> => {
    for (let tried = 1; ; tried++) {
      try {
        return await ask(inner);
      } catch (error) {
        if (inner.aborted || tried === maxTries || !isRetryable(error)) throw error;
        const delayMs = jitter(random, backoffDelayMs(retry, tried), retry.jitter ?? 0);
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
  readonly answer: T;
  readonly untilMs: number;
}

const maxEntries = 8_192;

/** Caches reviews, each for its own time. */
export class ReviewCache<T> {
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  readonly #entries = new LruMap<string, CacheEntry<T>>({ capacity: maxEntries });

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    this.#clock = clock;
  }

  get(key: string): T | undefined {
    const kept = this.#entries.get(key);
    if (kept === undefined) return undefined;
    if (this.#clock.monotonicMs() < kept.untilMs) return kept.answer;
    this.#entries.delete(key);
    return undefined;
  }

  /** A time of zero disables caching. */
  set(key: string, answer: T, ms: number): void {
    if (ms > 0) this.#entries.set(key, { answer, untilMs: this.#clock.monotonicMs() + ms });
  }
}
