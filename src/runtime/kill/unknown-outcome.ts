import { type Clock, isKind, KubelingError, onAbort, type Timer } from '../../lib/index.ts';

/** The runtime keeps a name for a call that never ended as far as we know, or for something we do not see yet. */
export function isNameReserved(error: unknown): boolean {
  if (isKind(error, 'Conflict')) return true;
  if (!(error instanceof KubelingError)) return false;
  const name = error.message.search(/\bname /);
  return name >= 0 && / is (?:reserved|in use)\b/.test(error.message.slice(name));
}

/** Whether what failed may have happened all the same, or may have happened before. */
export function mayHaveTakenEffect(error: unknown): boolean {
  return isKind(error, 'Unavailable', 'DeadlineExceeded') || isNameReserved(error);
}

const pollMs = 500;
const nameReservedWaitMs = 5_000;

/**
 * Looks for what a call of unknown outcome may have made. A taken name says that it is there or about to be, so that
 * is worth a little patience; otherwise one look must do.
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

/** Less than a process that is told to end has for that. */
const finishGraceMs = 3_000;

/**
 * Makes a call that leaves something half-made behind when it is cut off: once the signal is aborted it still gets a
 * moment to come to its own end. Settles like the call; that the signal is aborted is for the caller to see to.
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
