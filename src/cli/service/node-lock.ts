import { type ChildProcess, spawn } from 'node:child_process';
import { type FileHandle, open, readFile, stat } from 'node:fs/promises';
import { type Clock, errnoOf, KubelingError, type Logger, onAbort } from '../../lib/index.ts';

export interface NodeLockDeps {
  readonly clock: Clock;
  readonly logger: Logger;
}

const lookMs = 1_000;

/**
 * A lock file that only one kubelet of the machine can hold, of any implementation. The lock
 * belongs to the open file, so it ends with the process; the program `flock` locks the file
 * descriptor it inherits.
 */
export class NodeLock implements AsyncDisposable {
  readonly #file: FileHandle;
  readonly #path: string;
  readonly #clock: Clock;

  private constructor(path: string, file: FileHandle, clock: Clock) {
    this.#path = path;
    this.#file = file;
    this.#clock = clock;
  }

  /** Waits until the lock is released. */
  static async take(path: string, { clock, logger }: NodeLockDeps, signal: AbortSignal): Promise<NodeLock> {
    const file = await openLock(path);
    try {
      logger.info('Acquiring lock of the node', { path });
      await flock(path, file.fd, signal);
      return new NodeLock(path, file, clock);
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  /**
   * Resolves with the reason to release the lock: another process waits for it, or the file was
   * deleted.
   */
  async contended(signal: AbortSignal): Promise<string> {
    const { ino } = await this.#file.stat();
    for (;;) {
      if (await isAwaited(this.#file.fd)) return 'another process waits for it';
      if ((await inodeOf(this.#path)) !== ino) return 'its file was deleted';
      await this.#clock.sleep(lookMs, signal);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#file.close();
  }
}

async function openLock(path: string): Promise<FileHandle> {
  try {
    return await open(path, 'a+', 0o600);
  } catch (cause) {
    throw new KubelingError('NODE_LOCK', `Cannot open the lock file ${path}`, { cause });
  }
}

async function flock(path: string, fd: number, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  const child = spawn('flock', ['--exclusive', '3'], { stdio: ['ignore', 'ignore', 'pipe', fd] });
  using _end = onAbort(signal, () => void child.kill());
  const why = await endOf(child);
  signal.throwIfAborted();
  if (why !== undefined) throw new KubelingError('NODE_LOCK', `Cannot lock ${path}: ${why}`);
}

/** The failure, or undefined. */
function endOf(child: ChildProcess): Promise<string | undefined> {
  let said = '';
  child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
    said = (said + chunk).slice(-1_000);
  });
  return new Promise((resolve) => {
    child.once('error', (error) => resolve(error.message));
    child.once('close', (code, by) =>
      resolve(code === 0 ? undefined : `flock ended with ${code ?? by}: ${said.trim()}`),
    );
  });
}

/**
 * Whether a process waits for the lock of the open file. /proc/locks lists waiters with an arrow
 * and identifies the file by device and inode; the inode alone also matches files of other file
 * systems, which any user may lock.
 */
async function isAwaited(fd: number): Promise<boolean> {
  const info = await readFile(`/proc/self/fdinfo/${fd}`, 'utf8').catch(() => '');
  const file = /^lock:.* (?<file>[0-9a-f]+:[0-9a-f]+:\d+) /m.exec(info)?.groups?.['file'];
  if (file === undefined) return false;
  const locks = await readFile('/proc/locks', 'utf8').catch(() => '');
  return locks.split('\n').some((line) => /^\d+: ->/.test(line) && line.includes(` ${file} `));
}

async function inodeOf(path: string): Promise<number | undefined> {
  try {
    return (await stat(path)).ino;
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}
