import type { ServerResponse } from 'node:http';
import { type Clock, onAbort } from '../../lib/index.ts';

/** Who takes nothing at all for so long is not coming back. */
const stalledMs = 60_000;

/** The client does not read, or hardly. */
export class StalledError extends Error {}

/** Sends what is made piece by piece, each when the client has taken the one before. The head is sent already. */
export async function sendPieces(
  outgoing: ServerResponse,
  pieces: Iterable<string>,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  try {
    // Nobody reads what follows the head of an answer to HEAD.
    for (const piece of outgoing.req.method === 'HEAD' ? [] : pieces) {
      if (outgoing.destroyed || signal.aborted) return;
      if (!outgoing.write(Buffer.from(piece))) await drained(outgoing, clock, signal);
      else await new Promise((resolve) => setImmediate(resolve));
    }
    outgoing.end();
  } catch (error) {
    if (!(error instanceof StalledError)) throw error;
    outgoing.destroy();
  }
}

/** Resolves once the client has taken all there was for it, or is gone; rejects when it takes nothing for long. */
export function drained(outgoing: ServerResponse, clock: Clock, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const settle = (then: () => void) => {
      timer.cancel();
      link[Symbol.dispose]();
      outgoing.off('drain', done).off('close', done);
      then();
    };
    const done = () => settle(resolve);
    const timer = clock.timer(stalledMs, () => settle(() => reject(new StalledError('takes nothing'))));
    outgoing.on('drain', done).on('close', done);
    let link: Disposable = { [Symbol.dispose]: () => {} };
    link = onAbort(signal, (reason) => settle(() => reject(reason)));
  });
}
