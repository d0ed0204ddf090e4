import {
  closeSync,
  constants,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  statfsSync,
  statSync,
  write,
  writeSync,
} from 'node:fs';
import { readFile, rmdir } from 'node:fs/promises';
import { basename } from 'node:path';
import { promisify } from 'node:util';

const writeTo = promisify(write);

/**
 * The cgroup files of the kernel, and the calls needed to kill the processes in cgroups. Paths are
 * absolute. Every call fails with the errno of the kernel in `code`, like those of `node:fs`.
 */
export interface CgroupHost {
  /** The text of /proc/self/mountinfo. */
  mountinfo(): Promise<string>;
  /** The magic number of the file system at the path. */
  fsType(path: string): Promise<number>;
  read(path: string): Promise<string>;
  /**
   * Reads a file synchronously, for files that the kernel serves from memory; undefined if the file
   * cannot be read.
   */
  readSync(path: string): string | undefined;
  /**
   * Writes the value to an existing file with a single write, because the kernel interprets each
   * write as a complete value.
   */
  write(path: string, value: string): Promise<void>;
  mkdir(path: string): Promise<void>;
  rmdir(path: string): Promise<void>;
  /** The names of the subdirectories, sorted. */
  subdirectories(path: string): Promise<readonly string[]>;
  /** Sends SIGKILL to the process. */
  kill(pid: number): void;
  /** Opens a directory whose files are read repeatedly; without it `readSync` is used. */
  openFiles?(directory: string): DirectoryFiles;
}

/**
 * Files that the kernel serves from memory within microseconds are read synchronously, because the
 * thread pool takes a hundred times as long. Operations that may wait for memory or for the release
 * of a cgroup use the thread pool.
 */
export function realCgroupHost(procDir = '/proc'): CgroupHost {
  const kernel = new KernelFiles();
  return {
    mountinfo: () => readFile(`${procDir}/self/mountinfo`, 'utf8'),
    fsType: async (path) => statfsSync(path).type,
    read: async (path) => readFileSync(path, 'utf8'),
    readSync: (path) => kernel.read(path),
    write: writeExisting,
    mkdir: async (path) => mkdirSync(path, 0o755),
    rmdir: (path) => rmdir(path),
    subdirectories,
    kill: (pid) => void process.kill(pid, 'SIGKILL'),
    openFiles: (directory) => new OpenDirectoryFiles(directory, kernel),
  };
}

/**
 * Opens the file without creating it: a missing cgroup file means a missing controller, and in a
 * tmpfs creating it would succeed.
 */
async function writeExisting(path: string, value: string): Promise<void> {
  const file = openSync(path, constants.O_WRONLY);
  try {
    if (basename(path).startsWith('memory.')) await writeTo(file, value);
    else writeSync(file, value);
  } finally {
    closeSync(file);
  }
}

/**
 * A directory has one link from its parent, one from itself, and one from each subdirectory; some
 * file systems report no link counts.
 */
const linksOfNone = 2;

async function subdirectories(path: string): Promise<string[]> {
  if (statSync(path).nlink === linksOfNone) return [];
  return readdirSync(path, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name)
    .toSorted();
}

/**
 * The open files of one kernel directory, for repeated complete reads: opening a file costs more
 * than reading it.
 */
export interface DirectoryFiles {
  /** The current content of the file; undefined if the file is missing or cannot be read. */
  read(name: string): string | undefined;
  /** Closes all files; later reads open them again. */
  close(): void;
}

const bufferBytes = 16_384;
/**
 * One read of a kernel file returns as many lines as fit into a page of 4,096 bytes. A result below
 * this size is complete, because any further line would still have fit.
 */
const completeBelowBytes = 1_024;
const maxMissing = 100;

/**
 * Reads kernel files completely into one shared buffer. Do not use it for files on a disk that may
 * block.
 */
export class KernelFiles {
  #buffer: Buffer | undefined;
  /**
   * Names of files that were missing in a cgroup. They are usually missing in other cgroups too, so
   * their existence is checked before they are opened.
   */
  readonly #missing = new Set<string>();

  /** The current content of the file; undefined if the file is missing or cannot be read. */
  read(path: string): string | undefined {
    const file = this.#opened(path);
    if (file === undefined) return undefined;
    try {
      return this.textOf(file);
    } catch {
      return undefined;
    } finally {
      closeSync(file);
    }
  }

  /**
   * Checks whether a file exists if other cgroups lack a file of this name, because a failed open
   * costs more than the check.
   */
  #opened(path: string): number | undefined {
    const name = path.slice(path.lastIndexOf('/') + 1);
    if (this.#missing.has(name) && !existsSync(path)) return undefined;
    const file = opened(path);
    if (file === undefined && this.#missing.size < maxMissing) this.#missing.add(name);
    return file;
  }

  textOf(file: number): string {
    this.#buffer ??= Buffer.allocUnsafe(bufferBytes);
    const length = readSync(file, this.#buffer, 0, bufferBytes, 0);
    return length < completeBelowBytes
      ? this.#buffer.toString('utf8', 0, length)
      : longText(file, Buffer.from(this.#buffer.subarray(0, length)));
  }
}

function longText(file: number, begin: Buffer): string {
  const parts = [begin];
  for (let at = begin.length; ; ) {
    const part = Buffer.allocUnsafe(bufferBytes);
    const length = readSync(file, part, 0, bufferBytes, at);
    if (length === 0) return Buffer.concat(parts).toString();
    parts.push(part.subarray(0, length));
    at += length;
  }
}

export class OpenDirectoryFiles implements DirectoryFiles {
  readonly #directory: string;
  readonly #kernel: KernelFiles;
  readonly #open = new Map<string, number>();
  /**
   * The names of files that were missing: whether they exist is checked before they are opened,
   * because a failed open costs more.
   */
  readonly #missing = new Set<string>();

  constructor(directory: string, kernel: KernelFiles) {
    this.#directory = directory;
    this.#kernel = kernel;
  }

  read(name: string): string | undefined {
    const file = this.#open.get(name);
    if (file === undefined) return this.#openAndRead(name);
    try {
      return this.#kernel.textOf(file);
    } catch {
      // The cgroup may have been removed and created again, so the file is opened again by its
      // name.
      this.#drop(name, file);
      return this.#openAndRead(name);
    }
  }

  close(): void {
    for (const [name, file] of this.#open) this.#drop(name, file);
  }

  #openAndRead(name: string): string | undefined {
    const path = `${this.#directory}/${name}`;
    if (this.#missing.has(name) && !existsSync(path)) return undefined;
    const file = opened(path);
    if (file === undefined) {
      this.#missing.add(name);
      return undefined;
    }
    this.#open.set(name, file);
    try {
      return this.#kernel.textOf(file);
    } catch {
      this.#drop(name, file);
      return undefined;
    }
  }

  #drop(name: string, file: number): void {
    closeSync(file);
    this.#open.delete(name);
  }
}

function opened(path: string): number | undefined {
  try {
    return openSync(path, 'r');
  } catch {
    return undefined;
  }
}
