import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** What a process that connects somewhere gets: the beginning of the answer, or the code of the error. */
export type Attempt = { readonly answer: string } | { readonly error: string };

export interface AttemptPlace {
  /** The words before a program that enter a network namespace; that of the test without them. */
  readonly through?: readonly string[];
  /** The user, without its groups and capabilities; root unless given. */
  readonly uid?: number;
}

export type Target =
  | { readonly host: string; readonly port: number; readonly tls?: boolean }
  /** An abstract address begins with a NUL. */
  | { readonly path: string };

/** A packet filter that drops is noticed by time alone; what answers answers within a fraction of it. */
const waitMs = 3_000;
const attemptWithinMs = 30_000;
const child = fileURLToPath(new URL('connection-attempt-process.ts', import.meta.url));

/** Connects in a process of its own, sends the text, and reads until the other side ends or has sent enough. */
export function attempt(target: Target, text: string, place: AttemptPlace = {}): Promise<Attempt> {
  const { through = [], uid } = place;
  const [file = '', ...args] = [...through, process.execPath, child];
  const input = JSON.stringify({ target, text, uid, waitMs });
  return new Promise((resolve, reject) => {
    execFile(file, [...args, input], { timeout: attemptWithinMs }, (error, stdout, stderr) => {
      if (error === null) resolve(JSON.parse(stdout) as Attempt);
      else reject(new Error(`The attempt itself failed: ${stderr}`, { cause: error }));
    });
  });
}
