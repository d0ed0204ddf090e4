import type { Writable } from 'node:stream';
import { cancelledError, KubelingError, onAbort } from '../lib/index.ts';
import { exitCodes, type TextWriter } from './command.ts';

/** The part of the process that is listened to. */
export interface ProcessEvents {
  on(event: string, listener: (cause: unknown) => void): unknown;
  /** Never comes back. */
  exit(code: number): void;
  readonly stderr: TextWriter;
}

/** Why the root signal is aborted when the system asks us to end, as it does with all when it shuts down. */
export const sigterm = 'SIGTERM received';

/**
 * Turns what happens to the process into what kubeling does about it:
 *
 *   first SIGINT or SIGTERM     abort the root signal, so that everything ends in order
 *   any later one               exit with 1 at once
 *   rejection nobody handled    a mistake of ours in one corner; the pods must not pay for it: report, go on
 *   exception out of a callback its owner is in an unknown state; all we know is on disk and in the runtime, so the
 *                               safe answer is to report, end, and be started again
 */
export function watchProcess(events: ProcessEvents, root: AbortController): void {
  const report = (what: string, cause: unknown) => {
    const text = cause instanceof Error ? (cause.stack ?? cause.message) : String(cause);
    events.stderr.write(`kubeling: this is a bug in kubeling: ${what}: ${text}\n`);
  };
  for (const name of ['SIGINT', 'SIGTERM']) {
    events.on(name, () => {
      if (root.signal.aborted) events.exit(exitCodes.failed);
      else root.abort(cancelledError(`${name} received`));
    });
  }
  events.on('unhandledRejection', (cause) => report('nobody handled a rejection', cause));
  events.on('uncaughtException', (cause) => {
    report('nobody caught an exception', cause);
    events.exit(exitCodes.failed);
  });
}

/**
 * A signal that follows another, but when the system asks us to end (SIGTERM) only once the pods have ended: whoever
 * serves them must be there until then. A second one ends us at once all the same.
 */
export class DelayedSigterm implements Disposable {
  readonly #controller = new AbortController();
  readonly #link: Disposable;

  /** Ends nothing before the given work is done, which never rejects. */
  constructor(parent: AbortSignal, endPods: (signal: AbortSignal) => Promise<void>) {
    this.#link = onAbort(parent, (reason) => {
      if (!isSigterm(reason)) return this.#controller.abort(reason);
      void endPods(this.#controller.signal).finally(() => this.#controller.abort(reason));
    });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  [Symbol.dispose](): void {
    this.#link[Symbol.dispose]();
  }
}

function isSigterm(reason: unknown): boolean {
  return reason instanceof KubelingError && reason.message === sigterm;
}

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
