import { KubelingError } from '../../lib/index.ts';
import { isApiCode } from '../client/api-error.ts';

/** The operation of a reflector that failed. */
export type ReflectorPhase =
  /** Receiving the existing objects by a watch that continues with changes. */
  | 'stream'
  | 'list'
  /** Watching changes. */
  | 'follow';

/** The action after a failure. */
export type RecoveryAction =
  /** The same operation. */
  | 'retry'
  /** The same operation without the requested version, which the server does not have. */
  | 'newest'
  /** The server does not stream: request a list. */
  | 'list'
  /** Read everything again. */
  | 'sync';

export interface Recovery {
  readonly action: RecoveryAction;
  /** Whether to back off first. */
  readonly wait: 'back-off' | 'none';
}

export interface FailedPhase {
  readonly phase: ReflectorPhase;
  /** Whether a version was requested that the server may not have. */
  readonly version: 'a-version' | 'the-newest';
}

/**
 * Selects the action after a failure. An unreachable or overloaded server most likely still has the
 * last version: reading everything again would only add to its load. A version it does not have is
 * given up at once.
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

/** The version is expired, or newer than the server's. */
export function lacksVersion(error: unknown): boolean {
  if (isApiCode(error, 'API_GONE')) return true;
  return error instanceof KubelingError && /too large resource version/i.test(error.message);
}

/** The delay requested by the server; unreasonable values are limited. */
export function requestedDelayMs(error: unknown): number {
  const delayMs = error instanceof KubelingError ? error.details['retryAfterMs'] : undefined;
  return typeof delayMs === 'number' && delayMs > 0 ? Math.min(delayMs, maxRequestedDelayMs) : 0;
}

const maxRequestedDelayMs = 60_000;
