import { LruMap } from '../../lib/index.ts';

export const spamBurst = 25;
export const spamRefillMs = 300_000;

interface Bucket {
  readonly tokens: number;
  readonly atMs: number;
}

/** Lets so many events of a key through, then one every five minutes: what never gets well must not flood the API. */
export class SpamFilter {
  readonly #buckets: LruMap<string, Bucket>;

  constructor(capacity: number) {
    this.#buckets = new LruMap({ capacity });
  }

  /** Whether one more may pass. */
  allows(key: string, nowMs: number): boolean {
    const bucket = this.#buckets.get(key) ?? { tokens: spamBurst, atMs: nowMs };
    const tokens = Math.min(spamBurst, bucket.tokens + (nowMs - bucket.atMs) / spamRefillMs);
    const allowed = tokens >= 1;
    this.#buckets.set(key, { tokens: allowed ? tokens - 1 : tokens, atMs: nowMs });
    return allowed;
  }
}
