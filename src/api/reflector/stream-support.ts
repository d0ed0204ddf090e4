import { type Clock, describeError, kindOf } from '../../lib/index.ts';
import { isApiCode } from '../client/api-error.ts';

/**
 * How long a rejection is remembered: a server may gain support, for example when its etcd is
 * replaced.
 */
const againMs = 600_000;
const refusedUntilMs = new WeakMap<object, number>();

/**
 * Whether a watch may request initial objects: the server of this client has not rejected that
 * recently.
 */
export function mayStream(client: object, clock: Clock): boolean {
  return clock.monotonicMs() >= (refusedUntilMs.get(client) ?? Number.NEGATIVE_INFINITY);
}

/**
 * Records that the server does not support initial events in watches, so that not every reflector
 * of this client tries it.
 */
export function streamFailed(client: object, clock: Clock, error: unknown): void {
  if (isRefusal(error)) refusedUntilMs.set(client, clock.monotonicMs() + againMs);
}

function isRefusal(error: unknown): boolean {
  if (kindOf(error) === 'Unsupported') return true;
  const isAnswer = isApiCode(error, 'API_INVALID', 'API_FAILED');
  return isAnswer && /sendInitialEvents|watch stream|WatchList/i.test(describeError(error));
}
