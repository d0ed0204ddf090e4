import { type Clock, describeError, kindOf } from '../../lib/index.ts';
import { isApiCode } from '../client/api-error.ts';

/** A server may learn to while we talk to it, as when its etcd is replaced. */
const againMs = 600_000;
const refusedUntilMs = new WeakMap<object, number>();

/** Whether what there is may be asked for by a watch: the server behind this client has not refused that lately. */
export function mayStream(client: object, clock: Clock): boolean {
  return clock.monotonicMs() >= (refusedUntilMs.get(client) ?? Number.NEGATIVE_INFINITY);
}

/** What a server does not do for one it does for none: with hundreds of objects followed, each would ask in vain. */
export function streamFailed(client: object, clock: Clock, error: unknown): void {
  if (isRefusal(error)) refusedUntilMs.set(client, clock.monotonicMs() + againMs);
}

function isRefusal(error: unknown): boolean {
  if (kindOf(error) === 'Unsupported') return true;
  const isAnswer = isApiCode(error, 'API_INVALID', 'API_FAILED');
  return isAnswer && /sendInitialEvents|watch stream|WatchList/i.test(describeError(error));
}
