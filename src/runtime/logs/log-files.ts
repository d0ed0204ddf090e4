import { constants, watch } from 'node:fs';
import { type FileHandle, lstat, open, readdir, readlink, realpath } from 'node:fs/promises';
import { posix } from 'node:path';
import { describeError, errnoOf, KubelingError } from '../../lib/index.ts';

/** An open log file, independent of later renames and removal. */
export interface LogHandle extends AsyncDisposable {
  /** The identity of the file: equal for the same file under any name while it is open. */
  readonly identity: string;
  size(): Promise<number>;
  /**
   * Reads bytes at an offset; returns the number of bytes read: fewer than requested at the end of
   * the file, 0 beyond the end.
   */
  read(into: Uint8Array, position: number): Promise<number>;
}

/** `written`: a log file was written; `renamed`: a file was created, removed or renamed. */
export type LogHint = 'written' | 'renamed';

/**
 * The file operations for container logs. Failures are FILE_READ errors; a missing file is not a
 * failure.
 */
export interface LogFiles {
  /**
   * Opens a log file; undefined when it is missing. Rejects with LOG_REFUSED unless it is a regular
   * file and its real path is the given one.
   */
  open(path: string): Promise<LogHandle | undefined>;
  /**
   * Returns the identity of the file at the path; undefined when it is missing. Opens nothing, so a
   * later open can still fail.
   */
  identityAt(path: string): Promise<string | undefined>;
  /** Returns the names in a directory in any order; empty when it is missing. */
  names(directory: string): Promise<readonly string[]>;
  /**
   * Reports changes of files in the directory as hints; some changes may be missing, and some hints
   * may be wrong.
   */
  watch(directory: string, hint: (what: LogHint) => void): Disposable;
}

/** O_NONBLOCK prevents that a named pipe in place of a log blocks the open. */
const openFlags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/**
 * Log files below a root. Pods may mount the root and place anything there, so neither the log nor
 * a directory between it and the root may be a symlink. Only the root itself may be a symlink.
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
    if (!facts.isFile()) throw refused(path, 'it is not a regular file');
    const directory = posix.join(await realpath(podLogsDir), posix.dirname(inside));
    // Checks the real path of the opened file, because names may change at any time.
    const real = posix.dirname(await readlink(`/proc/self/fd/${file.fd}`));
    if (real !== directory) throw refused(path, `it is in ${real}`);
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
    if (errnoOf(error) === 'ELOOP') throw refused(path, 'it is a symlink');
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

/** No hints are reported if no inotify watch is available or the directory is missing. */
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
