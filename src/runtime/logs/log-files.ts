import { constants, watch } from 'node:fs';
import { type FileHandle, lstat, open, readdir, readlink, realpath } from 'node:fs/promises';
import { posix } from 'node:path';
import { describeError, errnoOf, KubelingError } from '../../lib/index.ts';

/** A log that is open. It stays the same file when its name changes or goes away. */
export interface LogHandle extends AsyncDisposable {
  /** The same for the same file under any name, as long as it is open. */
  readonly identity: string;
  size(): Promise<number>;
  /** Answers how many bytes it read: fewer than there is room for at the end of the file, none behind it. */
  read(into: Uint8Array, position: number): Promise<number>;
}

/** Whether a file was written to, or files came, went or changed their names. */
export type LogHint = 'written' | 'renamed';

/** The files of container logs. Failures are FILE_READ errors; what is not there is an answer, not a failure. */
export interface LogFiles {
  /** Undefined when it is not there. Rejects with LOG_REFUSED for anything but a regular file in its own directory. */
  open(path: string): Promise<LogHandle | undefined>;
  /** Of what is there now; undefined when nothing is. Opens nothing, and is no promise that it can be opened. */
  identityAt(path: string): Promise<string | undefined>;
  /** The names in a directory, in any order; none when there is no such directory. */
  names(directory: string): Promise<readonly string[]>;
  /** A hint and no more: one may come for nothing, and none may come for something. */
  watch(directory: string, hint: (what: LogHint) => void): Disposable;
}

/** A pipe somebody put in place of a log must not hold us. */
const openFlags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/**
 * The logs below a directory. Pods may have that directory mounted and put anything into it, so nothing there is
 * trusted: neither the log nor a directory on the way to it may be a link. The directory itself may be one.
 */
export function realLogFiles(podLogsDir: string): LogFiles {
  return {
    open: (path) => reading(path, () => openLog(podLogsDir, path), undefined),
    identityAt: (path) =>
      reading(path, async () => identityOf(await lstat(path, { bigint: true })), undefined),
    names: (directory) => reading(directory, () => readdir(directory), []),
    watch: watchLogs,
  };
}

async function openLog(podLogsDir: string, path: string): Promise<LogHandle> {
  const inside = posix.relative(podLogsDir, path);
  if (inside === '' || inside.startsWith('..')) throw refused(path, `it is not in ${podLogsDir}`);
  const file = await openUnlinked(path);
  try {
    const facts = await file.stat({ bigint: true });
    if (!facts.isFile()) throw refused(path, 'it is no regular file');
    const directory = posix.join(await realpath(podLogsDir), posix.dirname(inside));
    // Asked of the open file: whatever is done to the names meanwhile, this is where it really lies.
    const real = posix.dirname(await readlink(`/proc/self/fd/${file.fd}`));
    if (real !== directory) throw refused(path, `it lies in ${real}`);
    return handleOf(file, identityOf(facts));
  } catch (error) {
    await file.close();
    throw error;
  }
}

async function openUnlinked(path: string): Promise<FileHandle> {
  try {
    return await open(path, openFlags);
  } catch (error) {
    if (errnoOf(error) === 'ELOOP') throw refused(path, 'it is a link');
    throw error;
  }
}

function handleOf(file: FileHandle, identity: string): LogHandle {
  let closing: Promise<void> | undefined;
  return {
    identity,
    size: async () => (await file.stat()).size,
    read: async (into, position) => (await file.read(into, 0, into.length, position)).bytesRead,
    [Symbol.asyncDispose]: () => {
      closing ??= file.close();
      return closing;
    },
  };
}

function identityOf({ dev, ino }: { readonly dev: bigint; readonly ino: bigint }): string {
  return `${dev}:${ino}`;
}

function refused(path: string, why: string): KubelingError {
  return new KubelingError('LOG_REFUSED', `Cannot read the log ${path} as ${why}`);
}

async function reading<T, A>(path: string, act: () => Promise<T>, absent: A): Promise<T | A> {
  try {
    return await act();
  } catch (error) {
    const code = errnoOf(error);
    if (code === 'ENOENT' || code === 'ENOTDIR') return absent;
    if (error instanceof KubelingError) throw error;
    throw new KubelingError('FILE_READ', `Cannot read ${path}: ${describeError(error)}`, { cause: error });
  }
}

/** Where the machine has no more watches to give, or the directory is gone, there are no hints. */
function watchLogs(directory: string, hint: (what: LogHint) => void): Disposable {
  try {
    const watcher = watch(directory, { persistent: false }, (event) =>
      hint(event === 'rename' ? 'renamed' : 'written'),
    );
    watcher.on('error', () => watcher.close());
    return { [Symbol.dispose]: () => watcher.close() };
  } catch {
    return { [Symbol.dispose]: () => {} };
  }
}
