import { spawnSync } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';

/** The standard streams of this process, with the properties of a terminal. */
export interface Stdio {
  readonly stdin: Readable & { readonly isTTY?: boolean; setRawMode?(on: boolean): unknown };
  readonly stdout: Writable & {
    readonly isTTY?: boolean;
    readonly columns?: number;
    readonly rows?: number;
  };
  readonly stderr: Writable;
}

/**
 * Switches the terminal to raw mode until disposed: each key is sent immediately, including Ctrl-C,
 * and output is written unchanged. The raw mode of Node.js still converts newlines, which would
 * break programs that configure their own terminal.
 */
export function rawMode({ stdin }: Stdio): Disposable {
  stdin.setRawMode?.(true);
  if (stdin.isTTY === true) spawnSync('stty', ['-opost'], { stdio: ['inherit', 'ignore', 'ignore'] });
  return { [Symbol.dispose]: () => stdin.setRawMode?.(false) };
}

/** Returns a signal that aborts when the reader of the output closes it, as in `| head`. */
export function outputClosed({ stdout }: Stdio): AbortSignal {
  const closed = new AbortController();
  stdout.on('error', () => closed.abort());
  return closed.signal;
}

/** Calls the listener with the size of the terminal now and after each change. */
export function watchSize({ stdout }: Stdio, report: (size: string) => void): Disposable {
  const reportSize = () => report(JSON.stringify({ Width: stdout.columns ?? 80, Height: stdout.rows ?? 24 }));
  reportSize();
  stdout.on('resize', reportSize);
  return { [Symbol.dispose]: () => stdout.off('resize', reportSize) };
}
