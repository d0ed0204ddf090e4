import { describeError, jitter, KubelingError, type Random } from '../lib/index.ts';

/** The result of a sync, as far as it determines the time of the next one. */
export type SyncEnd =
  /** The pod enters its next state immediately. */
  | { readonly kind: 'transition' }
  | { readonly kind: 'ok' }
  | { readonly kind: 'failed'; readonly error: unknown };

export interface RequeueOptions {
  readonly syncFrequencyMs: number;
  readonly random: Random;
  readonly monotonicMs: number;
}

const failedMs = 10_000;
const transientMs = 1_000;
/** The maximum jitter as a share of the delay, so that pods do not sync at the same time. */
const jitterShare = 0.5;
const networkNotReady = 'network is not ready';

/** Returns the delay until the next sync of the pod if no update arrives. */
export function requeueDelayMs(end: SyncEnd, options: RequeueOptions): number {
  if (end.kind === 'transition') return 0;
  const delayMs = end.kind === 'ok' ? options.syncFrequencyMs : failureDelayMs(end.error, options);
  return jitter(options.random, delayMs, jitterShare);
}

/**
 * Returns the delay until a pod that may not start yet is checked again, unless another pod's end
 * triggers the check earlier.
 */
export function blockedDelayMs(random: Random): number {
  return jitter(random, failedMs, jitterShare);
}

function failureDelayMs(error: unknown, { syncFrequencyMs, monotonicMs }: RequeueOptions): number {
  if (describeError(error).includes(networkNotReady)) return transientMs;
  const retryMs = earliestRetryMs(error);
  const delayMs = retryMs === undefined ? failedMs : retryMs - monotonicMs;
  return Math.min(Math.max(0, delayMs), syncFrequencyMs);
}

/** The maximum depth of nested errors that is searched. */
const deepest = 16;

/**
 * Returns the earliest monotonic time at which the failed operation should be retried; undefined if
 * the error contains none. Code that waits for a back-off throws a KubelingError with that time as
 * `retryAtMs` in its details.
 */
function earliestRetryMs(error: unknown, depth = 0): number | undefined {
  if (!(error instanceof Error) || depth >= deepest) return undefined;
  const parts: unknown[] = error instanceof AggregateError ? [...error.errors, error.cause] : [error.cause];
  const found = parts.map((part) => earliestRetryMs(part, depth + 1));
  const own = error instanceof KubelingError ? error.details['retryAtMs'] : undefined;
  if (typeof own === 'number' && !Number.isNaN(own)) found.push(own);
  const times = found.filter((time) => time !== undefined);
  return times.length === 0 ? undefined : Math.min(...times);
}
