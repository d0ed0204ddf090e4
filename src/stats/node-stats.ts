import type { DirectoryUsages, FileCount, FileSystemSpace } from '../lib/index.ts';
import type { CgroupPressure, MemoryUsage } from './cgroup/cgroup-usage.ts';
import type { InterfaceUsage } from './cgroup/host-usage.ts';

/** How much has been used by somebody, at one moment. */
export interface Usage {
  readonly atMs: number;
  readonly cpuNanos: number | undefined;
  /** How much is used per second, over the last while; undefined at the first look. */
  readonly nanoCores: number | undefined;
  readonly memory: { readonly [part in keyof MemoryUsage]?: number | undefined } | undefined;
  readonly swapBytes: number | undefined;
  readonly swapAvailableBytes?: number | undefined;
  /** How long it had to wait for what it needs, where the kernel counts that. */
  readonly pressure?: CgroupPressure | undefined;
}

export interface FileUsage extends FileCount {
  readonly atMs: number;
}

export interface DiskUsage extends FileSystemSpace {
  /** The same for all paths on one file system, and for no other; where the machine says it. */
  readonly device?: string | undefined;
  readonly atMs: number;
}

/** A file system of the runtime, and what the runtime has put there. */
export interface RuntimeDisk {
  /** Unknown where the runtime does not say what it is, or that does not answer. */
  readonly disk: DiskUsage | undefined;
  readonly own: FileUsage;
  readonly mountPoint: string;
}

/** What a volume of a pod holds, as far as it is known. */
export interface VolumeUsage extends Partial<FileSystemSpace> {
  readonly atMs: number;
  readonly name: string;
  /** As its driver has it, where one looks after it. */
  readonly health?: 'normal' | 'abnormal' | undefined;
  /** Whether it goes with the pod and takes room of the disk of all pods. */
  readonly isScratch: boolean;
  readonly claim?: { readonly namespace: string; readonly name: string } | undefined;
}

export interface ContainerUsage {
  readonly name: string;
  /** RFC 3339. */
  readonly startTime: string | undefined;
  readonly usage: Usage;
  readonly rootfs?: FileUsage | undefined;
  readonly logs?: FileUsage | undefined;
}

export interface NetworkUsage {
  readonly atMs: number;
  /** The one others are reached by. */
  readonly main: string | undefined;
  readonly interfaces: readonly InterfaceUsage[];
}

export interface PodUsage {
  readonly name: string;
  readonly namespace: string;
  readonly uid: string;
  readonly startTime: string | undefined;
  readonly usage: Usage;
  readonly processes: number | undefined;
  readonly network?: NetworkUsage | undefined;
  readonly containers: readonly ContainerUsage[];
  readonly volumes?: readonly VolumeUsage[] | undefined;
  /** What it has written beside its containers and volumes: its own files in its log directory, and its list of hosts. */
  readonly others?: readonly FileUsage[] | undefined;
}

/** What the node itself has used, without a look at single pods. */
export interface NodeUsage {
  readonly usage: Usage;
  /** All there is, and what the kernel itself reckons could be had without swapping, where it says so. */
  readonly machineMemory?:
    | { readonly totalBytes: number; readonly availableBytes: number | undefined }
    | undefined;
  /** The machine's own parts: kubelet, runtime, misc, and all pods together. */
  readonly system: readonly ContainerUsage[];
  readonly network?: NetworkUsage | undefined;
  /** Where pods write to. */
  readonly disk?: DiskUsage | undefined;
  /** Where images lie, and where containers write to. */
  readonly images?: RuntimeDisk | undefined;
  readonly containers?: RuntimeDisk | undefined;
  /** Tasks there may be, and are. */
  readonly processes?: { readonly atMs: number; readonly max: number; readonly current: number } | undefined;
}

/** What a node and its pods have used. */
export interface NodeStats extends NodeUsage {
  readonly nodeName: string;
  readonly startTime: string;
  readonly pods: readonly PodUsage[];
}

/** Whether only what is cheap to find is wanted. */
export type StatsScope = 'all' | 'cpu-and-memory';

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
