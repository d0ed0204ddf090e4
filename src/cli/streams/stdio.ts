import { spawnSync } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';

/** The standard streams of this process, with what they are when they are a terminal. */
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
 * The terminal passes each key on as it is pressed, Ctrl-C too, and writes what it is given as it is, until this is
 * disposed. The raw mode of Node.js still makes two characters of a line's end, which would break the screens of
 * programs that have settled that with their own terminal.
 */
export function rawMode({ stdin }: Stdio): Disposable {
  stdin.setRawMode?.(true);
  if (stdin.isTTY === true) spawnSync('stty', ['-opost'], { stdio: ['inherit', 'ignore', 'ignore'] });
  return { [Symbol.dispose]: () => stdin.setRawMode?.(false) };
}

/** Aborted when nobody reads our output any more, as after `| head`. */
export function outputClosed({ stdout }: Stdio): AbortSignal {
  const closed = new AbortController();
  stdout.on('error', () => closed.abort());
  return closed.signal;
}

/** Tells the size of the terminal now and whenever it changes. */
export function watchSize({ stdout }: Stdio, tell: (size: string) => void): Disposable {
  const say = () => tell(JSON.stringify({ Width: stdout.columns ?? 80, Height: stdout.rows ?? 24 }));
  say();
  stdout.on('resize', say);
  return { [Symbol.dispose]: () => stdout.off('resize', say) };
}
