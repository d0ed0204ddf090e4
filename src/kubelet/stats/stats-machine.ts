import type { DirectoryUsages, FileSystemSpace } from '../../lib/index.ts';

/** One process, by what the kernel counts of it. */
export interface ProcessUsage {
  readonly cpuNanos: number;
  readonly rssBytes: number;
  readonly startMs: number;
  readonly pageFaults: number;
  readonly majorPageFaults: number;
}

export interface OpenFiles {
  readonly all: number;
  readonly sockets: number;
}

/** The machine as far as its use is found out beside cgroups; each is a look that changes nothing. */
export interface StatsMachine {
  /** Of the file system at a path; undefined when it does not answer. */
  space(path: string, signal: AbortSignal): Promise<FileSystemSpace | undefined>;
  readonly directories: DirectoryUsages;
  /** Our own process. */
  self(): ProcessUsage;
  /** What a process has open; it may be gone. */
  openFiles(pid: number): Promise<OpenFiles>;
  readonly kernel: string;
}
