import { execFileSync } from 'node:child_process';
import { closeSync, existsSync, openSync } from 'node:fs';

/** Why this machine does not support hanging mounts; false if it does. */
export const noHangingMounts =
  process.getuid?.() === 0 && existsSync('/dev/fuse') ? false : 'needs root and /dev/fuse';

/**
 * A FUSE mount whose server never responds, like an unreachable network server: a process that
 * accesses a file there blocks in the kernel.
 */
export class HangingMount implements Disposable {
  readonly directory: string;
  #server: number | undefined;

  constructor(directory: string) {
    this.directory = directory;
    this.#server = openSync('/dev/fuse', 'r+');
    const options = 'fd=3,rootmode=40000,user_id=0,group_id=0';
    const args = ['-i', '--no-canonicalize', '-t', 'fuse', '-o', options, 'hanging', directory];
    execFileSync('mount', args, { stdio: ['ignore', 'ignore', 'pipe', this.#server] });
  }

  /** Ends the server: blocked processes are released, and the mount is broken. */
  endServer(): void {
    if (this.#server !== undefined) closeSync(this.#server);
    this.#server = undefined;
  }

  [Symbol.dispose](): void {
    this.endServer();
    execFileSync('umount', ['-l', this.directory]);
  }
}
