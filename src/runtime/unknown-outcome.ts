import { type Clock, isKind, KubelingError } from '../lib/index.ts';

/** The runtime keeps a name for a call that never ended as far as we know, or for something we do not see yet. */
export function isNameTaken(error: unknown): boolean {
  if (isKind(error, 'Conflict')) return true;
  return error instanceof KubelingError && /\bname .* is (?:reserved|in use)\b/s.test(error.message);
}

/** Whether what failed may have happened all the same, or may have happened before. */
export function mayHaveHappened(error: unknown): boolean {
  return isKind(error, 'Unavailable', 'DeadlineExceeded') || isNameTaken(error);
}

const pollMs = 500;
const patienceMs = 5_000;

/**
 * Looks for what a call of unknown outcome may have made. A taken name says that it is there or about to be, so that
 * is worth a little patience; otherwise one look must do.
 */
export async function lookAfter<T>(
  error: unknown,
  clock: Clock,
  look: (signal: AbortSignal) => Promise<T | undefined>,
  signal: AbortSignal,
): Promise<T | undefined> {
  const endMs = clock.monotonicMs() + (isNameTaken(error) ? patienceMs : 0);
  for (;;) {
    const found = await look(signal);
    if (found !== undefined || clock.monotonicMs() >= endMs) return found;
    await clock.sleep(pollMs, signal);
  }
}
