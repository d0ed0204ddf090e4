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

/** What the API server says of a token. */
export interface TokenReviewResult {
  readonly authenticated: boolean;
  readonly user?: User | undefined;
  /** Why it could not say. */
  readonly error?: string | undefined;
}

export interface TokenReviewer {
  /** One question; it is not asked again here. */
  tokenReview(token: string, signal: AbortSignal): Promise<TokenReviewResult>;
}

/** A question whether somebody may do something to the node. */
export interface AccessReviewSpec {
  readonly user: User;
  readonly verb: string;
  readonly subresource: string;
  /** Of the node. */
  readonly name: string;
}

export interface AccessReviewResult {
  readonly allowed: boolean;
  readonly denied?: boolean | undefined;
  readonly reason?: string | undefined;
}

export interface AccessReviewer {
  /** One question; it is not asked again here. */
  subjectAccessReview(spec: AccessReviewSpec, signal: AbortSignal): Promise<AccessReviewResult>;
}

export interface ReviewDeps {
  readonly clock: Clock;
  readonly random: Random;
  /** How the waits between tries grow; half a second and half as much again each time unless given. */
  readonly retry?: BackoffPolicy | undefined;
}

const defaultRetry: BackoffPolicy = { baseMs: 500, factor: 1.5, maxMs: 10_000, jitter: 0.2 };
const maxTries = 5;
const reviewWithinMs = 30_000;

/** Asks, and asks again where that may help. The callers share nothing but the answer. */
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

/** What others said, each for a time of its own. */
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

  /** For no time is not at all. */
  set(key: string, answer: T, ms: number): void {
    if (ms > 0) this.#entries.set(key, { answer, untilMs: this.#clock.monotonicMs() + ms });
  }
}
