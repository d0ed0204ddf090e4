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
 * The kernel's cgroups as files, and what else it takes to end the processes in them. Paths are absolute. Every call
 * fails with the errno the kernel gave in `code`, as those of `node:fs` do.
 */
export interface CgroupHost {
  /** The text of /proc/self/mountinfo. */
  mountinfo(): Promise<string>;
  /** The magic number of the file system at the path. */
  fsType(path: string): Promise<number>;
  read(path: string): Promise<string>;
  /** The same at once, for what the kernel answers from memory; undefined where it cannot be read. */
  readSync(path: string): string | undefined;
  /** Gives the value to a file that is there, in a single write: the kernel takes each write for a whole value. */
  write(path: string, value: string): Promise<void>;
  mkdir(path: string): Promise<void>;
  rmdir(path: string): Promise<void>;
  /** The names of the directories in the directory, sorted. */
  subdirectories(path: string): Promise<readonly string[]>;
  /** SIGKILL. */
  kill(pid: number): void;
  /** For what is looked at again and again; by `look` unless given. */
  openFiles?(directory: string): DirectoryFiles;
}

/**
 * What the kernel answers from memory in some microseconds is asked at once: by way of the thread pool it takes a
 * hundred times as long. What may have to wait for memory to be freed, or for a cgroup to be given up, goes that way.
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

/** Never creates: a missing file of a cgroup means a missing controller, and in a tmpfs it would even succeed. */
async function writeExisting(path: string, value: string): Promise<void> {
  const file = openSync(path, constants.O_WRONLY);
  try {
    if (basename(path).startsWith('memory.')) await writeTo(file, value);
    else writeSync(file, value);
  } finally {
    closeSync(file);
  }
}

/** A directory has a link from above, one from itself, and one from each in it; some file systems count none of these. */
const linksOfNone = 2;

async function subdirectories(path: string): Promise<string[]> {
  if (statSync(path).nlink === linksOfNone) return [];
  return readdirSync(path, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name)
    .toSorted();
}

/**
 * The files of one directory of the kernel, for who reads them again and again, each time whole: to open one costs more
 * than to read it.
 */
export interface DirectoryFiles {
  /** What the file says now; undefined where there is none, or it cannot be read. */
  read(name: string): string | undefined;
  /** Nothing stays open; what is looked at after that is opened anew. */
  close(): void;
}

const bufferBytes = 16_384;
/**
 * The kernel gives as many lines at once as fit into a page. What is shorter than this is all there is: no line of these
 * files is as long as the rest of the page.
 */
const completeBelowBytes = 1_024;
const maxMissing = 100;

/** Reads whole files of the kernel into one place, again and again. Not for files whose disk may keep one waiting. */
export class KernelFiles {
  #buffer: Buffer | undefined;
  /** Names of files some directory has not: what one lacks others of its kind lack, too. */
  readonly #missing = new Set<string>();

  /** Undefined where there is none, or it cannot be read. */
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

  /** It costs more to fail to open one than to see that it is not there. */
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
  /** It costs more to fail to open one than to see that it is not there. */
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
      // It may have been made anew under its name.
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
