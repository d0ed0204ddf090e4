import type { Writable } from 'node:stream';
import { cancelledError, KubelingError, onAbort } from '../lib/index.ts';
import { exitCodes, type TextWriter } from './command.ts';

/** The events of the process that are handled. */
export interface ProcessEvents {
  on(event: string, listener: (cause: unknown) => void): unknown;
  /** Never returns. */
  exit(code: number): void;
  readonly stderr: TextWriter;
}

/** The abort reason of SIGTERM, which the system also sends at shutdown. */
export const sigterm = 'SIGTERM received';

/**
 * Handles events of the process:
 *
 *   first SIGINT or SIGTERM aborts the root signal, so that everything stops in order
 *   any later one exits with 1 immediately
 *   unhandled rejection a bug in one component that must not affect the pods: reports it and
 *   continues
 *   uncaught exception the component is in an unknown state, but all state is on disk and in the
 *   runtime: reports it
 *                             and exits, to be restarted
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
  events.on('unhandledRejection', (cause) => report('unhandled rejection', cause));
  events.on('uncaughtException', (cause) => {
    report('uncaught exception', cause);
    events.exit(exitCodes.failed);
  });
}

/**
 * A signal that follows the parent, but delays a SIGTERM until the pods have stopped, because their
 * servers must run until then. A second SIGTERM exits immediately.
 */
export class DelayedSigterm implements Disposable {
  readonly #controller = new AbortController();
  readonly #link: Disposable;

  /** `endPods` never rejects. */
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
 * Waits until all output is written: a pipe accepts only what its reader has room for, and the rest
 * would be lost at exit. Closed streams are not waited for, and nothing is once the signal is
 * aborted.
 */
export async function flushOutput(streams: readonly Writable[], signal: AbortSignal): Promise<void> {
  const { promise: stopped, resolve: stop } = Promise.withResolvers<void>();
  using _link = onAbort(signal, () => stop());
  const flushed = streams.map((stream) => new Promise<void>((done) => stream.write('', () => done())));
  await Promise.race([Promise.all(flushed), stopped]);
}
