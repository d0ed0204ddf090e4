import { onAbort } from '../lib/index.ts';

/** Rejects with the signal's reason, and before that does nothing. */
export function untilAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    // One listener for the whole life of the signal, which goes with it.
    onAbort(signal, reject);
  });
}
