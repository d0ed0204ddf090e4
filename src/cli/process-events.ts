import type { Writable } from 'node:stream';
import { cancelledError, KubelingError, onAbort } from '../lib/index.ts';
import { exitCodes, type TextWriter } from './command.ts';

/** The process events that kubeling handles. */
export interface ProcessEvents {
  on(event: string, listener: (cause: unknown) => void): unknown;
  /** Exits the process; never returns. */
  exit(code: number): void;
  readonly stderr: TextWriter;
}

/** The abort reason for SIGTERM, which the system also sends at shutdown. */
export const sigterm = 'SIGTERM received';

/**
 * Handles events of the process:
 *
 * - the first SIGINT or SIGTERM aborts the root signal, so that everything stops in order;
 * - a further signal exits with 1 immediately;
 * - an unhandled rejection is a bug in one component that must not affect the pods: it is reported,
 *   and the process continues;
 * - after an uncaught exception the component is in an unknown state, but all state is on disk and
 *   in the runtime: it is reported, and the process exits to be restarted.
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
 * An abort signal that follows the parent, but delays SIGTERM until the pods have stopped, because
 * the servers must run until then. A second SIGTERM exits immediately.
 */
export class DelayedSigterm implements Disposable {
  readonly #controller = new AbortController();
  readonly #link: Disposable;

  /** `endPods` stops the pods; it must never reject. */
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
 * Waits until all output is written, because data that the reader of a pipe has not accepted would
 * be lost at exit. Does not wait for closed streams, or after the signal is aborted.
 */
export async function flushOutput(streams: readonly Writable[], signal: AbortSignal): Promise<void> {
  const { promise: stopped, resolve: stop } = Promise.withResolvers<void>();
  using _link = onAbort(signal, () => stop());
  const flushed = streams.map((stream) => new Promise<void>((done) => stream.write('', () => done())));
  await Promise.race([Promise.all(flushed), stopped]);
}
