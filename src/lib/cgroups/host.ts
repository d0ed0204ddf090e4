import {
  closeSync,
  constants,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  statfsSync,
  statSync,
  write,
  writeSync,
} from 'node:fs';
import { readFile, rmdir } from 'node:fs/promises';
import { basename } from 'node:path';
import { promisify } from 'node:util';
import { type KeptFiles, KeptKernelFiles, KernelFiles } from './kept-files.ts';

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
  look(path: string): string | undefined;
  /** Gives the value to a file that is there, in a single write: the kernel takes each write for a whole value. */
  write(path: string, value: string): Promise<void>;
  mkdir(path: string): Promise<void>;
  rmdir(path: string): Promise<void>;
  /** The names of the directories in the directory, sorted. */
  subdirectories(path: string): Promise<readonly string[]>;
  /** SIGKILL. */
  kill(pid: number): void;
  /** For what is looked at again and again; by `look` unless given. */
  keptFiles?(directory: string): KeptFiles;
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
    look: (path) => kernel.look(path),
    write: writeExisting,
    mkdir: async (path) => mkdirSync(path, 0o755),
    rmdir: (path) => rmdir(path),
    subdirectories,
    kill: (pid) => void process.kill(pid, 'SIGKILL'),
    keptFiles: (directory) => new KeptKernelFiles(directory, kernel),
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

/** The kernel's name of a failure, such as EBUSY. */
export function errnoOf(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException | undefined)?.code;
}
