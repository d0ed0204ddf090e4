import { KubelingError } from '../../lib/index.ts';
import { isApiCode } from '../client/api-error.ts';

/** The operation of a reflector that has failed. */
export type ReflectorPhase =
  /** A watch with `sendInitialEvents`: receives the existing objects and then changes. */
  | 'stream'
  | 'list'
  /** A watch that receives only changes. */
  | 'follow';

/** What a reflector does after a failure. */
export type RecoveryAction =
  /** Retries the same operation. */
  | 'retry'
  /** Retries without the requested resource version, which the server does not have. */
  | 'newest'
  /** Falls back to a list, because the server does not support initial events in a watch. */
  | 'list'
  /** Reads all objects again. */
  | 'sync';

export interface Recovery {
  readonly action: RecoveryAction;
  /** Whether to wait for the back-off delay first. */
  readonly wait: 'back-off' | 'none';
}

export interface FailedPhase {
  readonly phase: ReflectorPhase;
  /**
   * Whether the failed request asked for a particular resource version, which the server may not
   * have.
   */
  readonly version: 'a-version' | 'the-newest';
}

/**
 * Selects the action after a failure. An unreachable or overloaded server most likely still has the
 * last resource version, so reading all objects again would only add to its load. A version that
 * the server does not have is not requested again.
 */
export function recoveryOf(error: unknown, { phase, version }: FailedPhase): Recovery {
  const versionLost = lacksVersion(error);
  if (versionLost && phase !== 'follow' && version === 'a-version') return { action: 'newest', wait: 'none' };
  if (isServerUnavailable(error) && !versionLost && phase !== 'list')
    return { action: 'retry', wait: 'back-off' };
  return phase === 'stream' ? { action: 'list', wait: 'none' } : { action: 'sync', wait: 'back-off' };
}

export function isServerUnavailable(error: unknown): boolean {
  return isApiCode(error, 'API_UNAVAILABLE', 'API_TOO_MANY', 'API_DEADLINE', 'DEADLINE_EXCEEDED');
}

/** Whether the server reports that the resource version has expired or is newer than its own. */
export function lacksVersion(error: unknown): boolean {
  if (isApiCode(error, 'API_GONE')) return true;
  return error instanceof KubelingError && /too large resource version/i.test(error.message);
}

/** Returns the delay requested by the server, limited to a sensible range. */
export function requestedDelayMs(error: unknown): number {
  const delayMs = error instanceof KubelingError ? error.details['retryAfterMs'] : undefined;
  return typeof delayMs === 'number' && delayMs > 0 ? Math.min(delayMs, maxRequestedDelayMs) : 0;
}

const maxRequestedDelayMs = 60_000;
