import { KubelingError } from '../../lib/index.ts';
import { isApiCode } from '../client/api-error.ts';

/** What a reflector was at when it failed. */
export type ReflectorPhase =
  /** Taking in the objects there are, by the watch that goes on with their changes. */
  | 'stream'
  | 'list'
  /** Following the changes. */
  | 'follow';

/** What comes after a failure. */
export type ReflectorStep =
  /** The same again. */
  | 'again'
  /** The same again without the version asked for: the server does not have it. */
  | 'newest'
  /** The server does not stream: ask for a list. */
  | 'list'
  /** Take in everything anew. */
  | 'sync';

export interface Recovery {
  readonly step: ReflectorStep;
  /** Whether to give the server time first. */
  readonly wait: 'back-off' | 'none';
}

export interface FailedPhase {
  readonly phase: ReflectorPhase;
  /** Whether a version was asked for that the server may lack. */
  readonly asked: 'a-version' | 'the-newest';
}

/**
 * Decides what a failure means. A server that cannot be reached, or has too much to do, most likely still has what we
 * were at: everything anew would only add to its load. A version it lacks is given up at once.
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

/** The version is forgotten, or one the server has yet to hear of. */
export function lacksVersion(error: unknown): boolean {
  if (isApiCode(error, 'API_GONE')) return true;
  return error instanceof KubelingError && /too large resource version/i.test(error.message);
}

/** How long the server asked to be left alone; what is beyond all reason is cut. */
export function askedRestMs(error: unknown): number {
  const asked = error instanceof KubelingError ? error.details['retryAfterMs'] : undefined;
  return typeof asked === 'number' && asked > 0 ? Math.min(asked, longestRestMs) : 0;
}

const longestRestMs = 60_000;
