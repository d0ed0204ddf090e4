import { type Clock, isKind, KubelingError, onAbort, type Timer } from '../../lib/index.ts';

/**
 * Whether the runtime reports that the name is reserved: by a call that has not finished, or for an
 * object that is not listed yet.
 */
export function isNameReserved(error: unknown): boolean {
  if (isKind(error, 'Conflict')) return true;
  if (!(error instanceof KubelingError)) return false;
  const name = error.message.search(/\bname /);
  return name >= 0 && / is (?:reserved|in use)\b/.test(error.message.slice(name));
}

/**
 * Whether a call that failed with this error, or an earlier call for the same name, may have taken
 * effect in the runtime.
 */
export function mayHaveTakenEffect(error: unknown): boolean {
  return isKind(error, 'Unavailable', 'DeadlineExceeded') || isNameReserved(error);
}

const pollMs = 500;
const nameReservedWaitMs = 5_000;

/**
 * Searches the runtime for the result of a call with unknown outcome. If the runtime reports a
 * reserved name, the result exists or will soon exist, so the search is repeated for some seconds;
 * otherwise it runs once.
 */
export async function pollForResult<T>(
  error: unknown,
  clock: Clock,
  find: (signal: AbortSignal) => Promise<T | undefined>,
  signal: AbortSignal,
): Promise<T | undefined> {
  const endMs = clock.monotonicMs() + (isNameReserved(error) ? nameReservedWaitMs : 0);
  for (;;) {
    const found = await find(signal);
    if (found !== undefined || clock.monotonicMs() >= endMs) return found;
    await clock.sleep(pollMs, signal);
  }
}

/**
 * How long a cancelled call may continue; shorter than the time that the kubelet has to shut down.
 */
const finishGraceMs = 3_000;

/**
 * Runs a call that leaves partial state when it is cancelled: after the signal is aborted, the call
 * gets some seconds to finish. Settles like the call; the caller must check the signal.
 */
export async function withFinishGrace<T>(
  clock: Clock,
  call: (signal: AbortSignal) => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  signal.throwIfAborted();
  const controller = new AbortController();
  let patience: Timer | undefined;
  using _link = onAbort(signal, (reason) => {
    patience = clock.timer(finishGraceMs, () => controller.abort(reason));
  });
  try {
    return await call(controller.signal);
  } finally {
    patience?.cancel();
  }
}
