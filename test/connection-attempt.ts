import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** The result of a connection attempt: the beginning of the response, or the error code. */
export type Attempt = { readonly answer: string } | { readonly error: string };

export interface AttemptPlace {
  /**
   * The command prefix that enters a network namespace; without it, the namespace of the test is
   * used.
   */
  readonly through?: readonly string[];
  /** The UID to run as, without its groups and capabilities; root if undefined. */
  readonly uid?: number;
}

export type Target =
  | { readonly host: string; readonly port: number; readonly tls?: boolean }
  /** A path that begins with a NUL is an abstract address. */
  | { readonly path: string };

/**
 * The timeout after which a connection counts as dropped by a packet filter; a server responds in a
 * fraction of it.
 */
const waitMs = 3_000;
const attemptWithinMs = 30_000;
const child = fileURLToPath(new URL('connection-attempt-process.ts', import.meta.url));

/**
 * Connects in a separate process, sends the text, and reads until the peer closes the connection or
 * has sent enough.
 */
export function attempt(target: Target, text: string, place: AttemptPlace = {}): Promise<Attempt> {
  const { through = [], uid } = place;
  const [file = '', ...args] = [...through, process.execPath, child];
  const input = JSON.stringify({ target, text, uid, waitMs });
  return new Promise((resolve, reject) => {
    execFile(file, [...args, input], { timeout: attemptWithinMs }, (error, stdout, stderr) => {
      if (error === null) resolve(JSON.parse(stdout) as Attempt);
      else reject(new Error(`Cannot run the connection attempt: ${stderr}`, { cause: error }));
    });
  });
}
