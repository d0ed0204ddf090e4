import { describeError, jitter, KubelingError, type Random } from '../lib/index.ts';

/** How a sync ended, as far as it decides when to look again. */
export type SyncEnd =
  /** The pod goes on to its next state at once. */
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
/** Delays are stretched by up to this share, so that pods do not fall into step. */
const jitterShare = 0.5;
const networkNotReady = 'network is not ready';

/** How long until the pod should be looked at again though nothing changed. */
export function requeueDelayMs(end: SyncEnd, options: RequeueOptions): number {
  if (end.kind === 'transition') return 0;
  const delayMs = end.kind === 'ok' ? options.syncFrequencyMs : failureDelayMs(end.error, options);
  return jitter(options.random, delayMs, jitterShare);
}

/** A pod that may not start yet is looked at again after this long, if nobody wakes it before. */
export function blockedDelayMs(random: Random): number {
  return jitter(random, failedMs, jitterShare);
}

function failureDelayMs(error: unknown, { syncFrequencyMs, monotonicMs }: RequeueOptions): number {
  if (describeError(error).includes(networkNotReady)) return transientMs;
  const retryMs = earliestRetryMs(error);
  const delayMs = retryMs === undefined ? failedMs : retryMs - monotonicMs;
  return Math.min(Math.max(0, delayMs), syncFrequencyMs);
}

/** Errors of errors deeper than this are not looked into. */
const deepest = 16;

/**
 * The earliest moment, in the clock's monotonic milliseconds, at which something in the error may be tried again.
 * Whoever waits out a back-off throws a KubelingError with that moment as `retryAtMs` in its details.
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
