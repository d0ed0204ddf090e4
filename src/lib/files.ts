import { randomBytes } from 'node:crypto';
import { type FileHandle, open, readdir, readFile, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { KubelingError } from './errors.ts';

export interface WriteOptions {
  /** The exact permissions of the file, whatever the umask. */
  readonly mode: number;
  /**
   * What the new content must survive: a power cut (default), or only a crash of this process,
   * which needs no fsync. Without fsync, a power cut may leave the old file, an empty one or none.
   */
  readonly survives?: 'power-cut' | 'crash';
  /**
   * The owner of the file, by default the user of this process; only root can set another owner.
   */
  readonly owner?: { readonly uid: number; readonly gid: number } | undefined;
}

/**
 * The mode of the temporary file. A umask that removes one of these bits would prevent the process
 * from reading its own files.
 */
const ownerOnly = 0o600;
const tempName = /^\.kubeling-[0-9a-f]{16}\.tmp$/;

/**
 * Replaces the file atomically: at any time, and after a power cut, readers find the complete old
 * or new content. A symbolic link at the path is replaced, not followed. The directory must exist.
 */
export async function writeFileAtomic(
  path: string,
  data: string | Uint8Array,
  options: WriteOptions,
): Promise<void> {
  const temp = join(dirname(path), `.kubeling-${randomBytes(8).toString('hex')}.tmp`);
  try {
    await writeTemp(temp, data, options);
    await rename(temp, path);
  } catch (error) {
    await rm(temp, { force: true }).catch(() => {});
    throw writeError(path, error);
  }
  if (options.survives === 'crash') return;
  await syncDirectory(dirname(path)).catch((error) => {
    throw writeError(path, error);
  });
}

export function writeJsonAtomic(path: string, value: unknown, options: WriteOptions): Promise<void> {
  return writeFileAtomic(path, `${JSON.stringify(value)}\n`, options);
}

/**
 * Removes temporary files that a crash during a write left in the directory; returns their names.
 * Only the owner of the directory may call it, before its first write there: a leftover cannot be
 * distinguished from a write in progress.
 */
export async function removeLeftoverTemps(directory: string): Promise<string[]> {
  const names = await readdir(directory).catch((error) => {
    if (error.code === 'ENOENT') return [];
    throw new KubelingError('FILE_READ', `Cannot list ${directory}: ${error.code}`, { cause: error });
  });
  const leftovers = names.filter((name) => tempName.test(name));
  for (const name of leftovers) await rm(join(directory, name), { force: true });
  return leftovers;
}

async function writeTemp(path: string, data: string | Uint8Array, options: WriteOptions): Promise<void> {
  // Until the file is complete, only its owner can read it: the content may be a secret, and the
  // umask is unknown.
  await using file = await open(path, 'wx', ownerOnly);
  await file.writeFile(data);
  // Owner and mode are changed through the handle: other users who may write to the directory could
  // replace the name with a link.
  const { owner } = options;
  if (owner !== undefined) await file.chown(owner.uid, owner.gid);
  if (options.mode !== ownerOnly) await file.chmod(options.mode);
  if (options.survives !== 'crash') await file.sync();
}

/** Syncs the directory: without it a power cut may restore the old file. */
async function syncDirectory(path: string): Promise<void> {
  await using directory = await open(path, 'r');
  await directory.sync().catch((error) => {
    // Some network file systems cannot sync directories; there the rename is not guaranteed to
    // survive a power cut.
    if (error.code !== 'EINVAL' && error.code !== 'ENOTSUP') throw error;
  });
}

function writeError(path: string, cause: unknown): KubelingError {
  const code = (cause as NodeJS.ErrnoException).code ?? String(cause);
  return new KubelingError('FILE_WRITE', `Cannot write ${path}: ${code}`, { cause, details: { path } });
}

export interface ReadJsonOptions<T> {
  /**
   * Converts the parsed JSON into the required type; an error it throws is reported as corruption
   * of this file.
   */
  readonly check: (value: unknown) => T;
  /** The maximum size of the file, 16 MiB by default; a larger file is rejected. */
  readonly maxBytes?: number;
}

/**
 * Reads a JSON file. Throws FILE_NOT_FOUND when it is missing, FILE_CORRUPT when the content is
 * invalid, and FILE_READ when it cannot be read. The content never appears in an error, because it
 * may be a secret.
 */
export async function readJsonFile<T>(path: string, options: ReadJsonOptions<T>): Promise<T> {
  const text = await readText(path, options.maxBytes ?? 16 * 2 ** 20);
  const value = parseJson(path, text);
  try {
    return options.check(value);
  } catch (error) {
    throw corrupt(path, error instanceof KubelingError ? error.message : 'its content has another shape');
  }
}

async function readText(path: string, maxBytes: number): Promise<string> {
  try {
    await using file = await open(path, 'r');
    return await readBounded(file, path, maxBytes);
  } catch (error) {
    if (error instanceof KubelingError) throw error;
    const code = (error as NodeJS.ErrnoException).code;
    const kind = code === 'ENOENT' ? 'FILE_NOT_FOUND' : 'FILE_READ';
    throw new KubelingError(kind, `Cannot read ${path}: ${code ?? error}`, {
      cause: error,
      details: { path },
    });
  }
}

async function readBounded(file: FileHandle, path: string, maxBytes: number): Promise<string> {
  const { size } = await file.stat();
  if (size > maxBytes) {
    throw corrupt(path, `it must have at most ${maxBytes} bytes: current size is ${size}`);
  }
  return await file.readFile('utf8');
}

function parseJson(path: string, text: string): unknown {
  if (text.trim() === '') throw corrupt(path, 'it must hold JSON: it is empty');
  try {
    return JSON.parse(text);
  } catch (error) {
    throw corrupt(path, `it must hold JSON: ${errorPosition(String(error))}`);
  }
}

/** The parser's message quotes the content, so only the position in the message is used. */
function errorPosition(message: string): string {
  const offset = /at position (\d+)/.exec(message)?.[1];
  if (offset !== undefined) return `it is wrong at position ${offset}`;
  return message.includes('end of JSON') ? 'it ends early' : 'it is something else';
}

function corrupt(path: string, why: string): KubelingError {
  const message = `Cannot use ${basename(path)} in ${dirname(path)} as ${why}`;
  return new KubelingError('FILE_CORRUPT', message, { details: { path } });
}

/** Reads the text of a file; undefined when the file is missing. */
export async function readFileIfExists(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/** Reads a JSON file; undefined when the file is missing or invalid. */
export async function readJsonIfValid(path: string): Promise<unknown> {
  const text = await readFileIfExists(path);
  try {
    return text === undefined ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Reads the text of a file up to a maximum size, for files that any user may have written. */
export async function readBoundedFile(path: string, mostBytes: number): Promise<string> {
  await using file = await open(path, 'r');
  const { size } = await file.stat();
  if (size > mostBytes) throw new Error(`it must have at most ${mostBytes} bytes: current size is ${size}`);
  return await file.readFile('utf8');
}
