import { cancelled } from '../lib/index.ts';
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
      else root.abort(cancelled(`${name} received`));
    });
  }
  events.on('unhandledRejection', (cause) => report('nobody handled a rejection', cause));
  events.on('uncaughtException', (cause) => {
    report('nobody caught an exception', cause);
    events.exit(exitCodes.failed);
  });
}
