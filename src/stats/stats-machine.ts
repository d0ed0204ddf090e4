import type { DirectoryUsages } from '../lib/index.ts';
import type { DiskUsage } from './node-stats.ts';

/** One process, by what the kernel counts of it. */
export interface ProcessUsage {
  readonly cpuNanos: number;
  readonly rssBytes: number;
  readonly startMs: number;
  readonly pageFaults: number;
  readonly majorPageFaults: number;
}

/** A part of the machine: a cgroup, below each tree, or a process alone. */
export type SystemPart = { readonly cgroup: string } | { readonly process: ProcessUsage };

export interface OpenFiles {
  readonly all: number;
  readonly sockets: number;
}

/** The machine as far as its use is found out beside cgroups; each is a look that changes nothing. */
export interface StatsMachine {
  /** Of the file system at a path; undefined when it does not answer. */
  space(path: string, signal: AbortSignal): Promise<Omit<DiskUsage, 'atMs'> | undefined>;
  /** Ended with the kubelet, where it can be; who asks after that starts it anew. */
  readonly directories: DirectoryUsages & Partial<Disposable>;
  /** Our own process. */
  self(): ProcessUsage;
  /** The runtime, by the socket it is reached by; undefined where it cannot be found. */
  runtimeAt?(socket: string): Promise<SystemPart | undefined>;
  /** What a process has open; it may be gone. */
  openFiles(pid: number): Promise<OpenFiles>;
  readonly kernel: string;
}
