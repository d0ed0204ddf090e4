import type { Instant } from '../../lib/index.ts';

export type FileKind = 'file' | 'directory' | 'socket' | 'device' | 'other';

/** The file system a path lies on. */
export interface Space {
  /** The number the kernel gives the type of file system. */
  readonly type: number;
  readonly totalBytes: number;
  readonly availableBytes: number;
  /** Zero for file systems without a fixed number of inodes. */
  readonly totalInodes: number;
  readonly freeInodes: number;
}

export interface Ran {
  readonly code: number;
  /** Standard output, then standard error. */
  readonly output: string;
}

export interface RuntimeAnswer {
  readonly name: string;
  readonly version: string;
}

/**
 * All that the checks see of a machine, so that tests can show them any machine. Everything may reject, with an
 * error worth showing, when it cannot be had; what merely is not there is answered as undefined where it says so.
 */
export interface Machine {
  readonly platform: string;
  readonly arch: string;
  readonly nodeVersion: string;
  readonly kernelRelease: string;
  readonly uid: number;
  now(): Instant;
  /** The text of a file, undefined when there is none. Not for devices. */
  readText(path: string): Promise<string | undefined>;
  /** The names in a directory, undefined when there is none. */
  list(path: string): Promise<readonly string[] | undefined>;
  kindOf(path: string): Promise<FileKind | undefined>;
  /** Opens for reading and closes again, without ever waiting for data. */
  tryOpen(path: string): Promise<void>;
  spaceAt(path: string): Promise<Space>;
  /** The path of a command, undefined when there is none. */
  findCommand(name: string): Promise<string | undefined>;
  run(file: string, args: readonly string[], signal: AbortSignal): Promise<Ran>;
  askRuntime(endpoint: string, signal: AbortSignal): Promise<RuntimeAnswer>;
}
