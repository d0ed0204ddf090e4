import { type Clock, describeError, kindOf } from '../../lib/index.ts';
import { isApiCode } from '../client/api-error.ts';

/** A server may gain support during the process, for example when its etcd is replaced. */
const againMs = 600_000;
const refusedUntilMs = new WeakMap<object, number>();

/**
 * Whether initial objects may be requested by a watch: the server behind this client has not
 * rejected that recently.
 */
export function mayStream(client: object, clock: Clock): boolean {
  return clock.monotonicMs() >= (refusedUntilMs.get(client) ?? Number.NEGATIVE_INFINITY);
}

/**
 * A server that does not support it for one reflector supports it for none: hundreds of reflectors
 * would try without success.
 */
export function streamFailed(client: object, clock: Clock, error: unknown): void {
  if (isRefusal(error)) refusedUntilMs.set(client, clock.monotonicMs() + againMs);
}

function isRefusal(error: unknown): boolean {
  if (kindOf(error) === 'Unsupported') return true;
  const isAnswer = isApiCode(error, 'API_INVALID', 'API_FAILED');
  return isAnswer && /sendInitialEvents|watch stream|WatchList/i.test(describeError(error));
}
