import type { Writable } from 'node:stream';
import { onAbort } from '../lib/index.ts';

/**
 * Waits until all that was written has been taken: a pipe takes no more than its reader leaves room for, and what it has
 * not taken is gone with the process. Streams that have lost their reader are not waited for, nor any once the signal
 * is aborted.
 */
export async function flushOutput(streams: readonly Writable[], signal: AbortSignal): Promise<void> {
  const { promise: stopped, resolve: stop } = Promise.withResolvers<void>();
  using _link = onAbort(signal, () => stop());
  const taken = streams.map((stream) => new Promise<void>((done) => stream.write('', () => done())));
  await Promise.race([Promise.all(taken), stopped]);
}
