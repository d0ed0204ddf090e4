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
export type ReflectorStep =
  /** The same operation. */
  | 'again'
  /** The same operation without the requested version, which the server does not have. */
  | 'newest'
  /** The server does not stream: request a list. */
  | 'list'
  /** Read everything again. */
  | 'sync';

export interface Recovery {
  readonly step: ReflectorStep;
  /** Whether to back off first. */
  readonly wait: 'back-off' | 'none';
}

export interface FailedPhase {
  readonly phase: ReflectorPhase;
  /** Whether a version was requested that the server may not have. */
  readonly asked: 'a-version' | 'the-newest';
}

/**
 * Selects the action after a failure. An unreachable or overloaded server most likely still has the
 * last version: reading everything again would only add to its load. A version it does not have is
 * given up at once.
 */
export function recoveryOf(error: unknown, { phase, asked }: FailedPhase): Recovery {
  const lacking = lacksVersion(error);
  if (lacking && phase !== 'follow' && asked === 'a-version') return { step: 'newest', wait: 'none' };
  if (isAway(error) && !lacking && phase !== 'list') return { step: 'again', wait: 'back-off' };
  return phase === 'stream' ? { step: 'list', wait: 'none' } : { step: 'sync', wait: 'back-off' };
}

export function isAway(error: unknown): boolean {
  return isApiCode(error, 'API_UNAVAILABLE', 'API_TOO_MANY', 'API_DEADLINE', 'DEADLINE_EXCEEDED');
}

/** The version is expired, or newer than the server's. */
export function lacksVersion(error: unknown): boolean {
  if (isApiCode(error, 'API_GONE')) return true;
  return error instanceof KubelingError && /too large resource version/i.test(error.message);
}

/** The delay requested by the server; unreasonable values are limited. */
export function askedRestMs(error: unknown): number {
  const asked = error instanceof KubelingError ? error.details['retryAfterMs'] : undefined;
  return typeof asked === 'number' && asked > 0 ? Math.min(asked, longestRestMs) : 0;
}

const longestRestMs = 60_000;
