import type { DirectoryUsages, FileCount, FileSystemSpace } from '../lib/index.ts';
import type { CgroupPressure, MemoryUsage } from './cgroup/cgroup-usage.ts';
import type { InterfaceUsage } from './cgroup/host-usage.ts';

/** The resource usage at one time. */
export interface Usage {
  readonly atMs: number;
  readonly cpuNanos: number | undefined;
  /** The rate over the last interval; undefined for the first sample. */
  readonly nanoCores: number | undefined;
  readonly memory: { readonly [part in keyof MemoryUsage]?: number | undefined } | undefined;
  readonly swapBytes: number | undefined;
  readonly swapAvailableBytes?: number | undefined;
  /** The pressure stall information, if the kernel reports it. */
  readonly pressure?: CgroupPressure | undefined;
}

export interface FileUsage extends FileCount {
  readonly atMs: number;
}

export interface DiskUsage extends FileSystemSpace {
  /** Identifies the file system of a path, if known. */
  readonly device?: string | undefined;
  readonly atMs: number;
}

/** A file system of the runtime and the usage of the runtime on it. */
export interface RuntimeDisk {
  /** Undefined if the runtime does not report its path or the file system does not respond. */
  readonly disk: DiskUsage | undefined;
  readonly own: FileUsage;
  readonly mountPoint: string;
}

/** The usage of a volume as far as known. */
export interface VolumeUsage extends Partial<FileSystemSpace> {
  readonly atMs: number;
  readonly name: string;
  /** The health reported by the CSI driver. */
  readonly health?: 'normal' | 'abnormal' | undefined;
  /** Whether it is ephemeral and on the disk of the pods. */
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
  /** The interface of the default route. */
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
  /** Other files of the pod: in its log directory, and its hosts file. */
  readonly otherFiles?: readonly FileUsage[] | undefined;
}

/** The usage of the node without its pods. */
export interface NodeUsage {
  readonly usage: Usage;
  /** The total memory and MemAvailable. */
  readonly machineMemory?:
    | { readonly totalBytes: number; readonly availableBytes: number | undefined }
    | undefined;
  /** The system containers: kubelet, runtime, misc, and pods. */
  readonly system: readonly ContainerUsage[];
  readonly network?: NetworkUsage | undefined;
  /** The file system of pods. */
  readonly disk?: DiskUsage | undefined;
  /** The file systems of images and of writable layers. */
  readonly images?: RuntimeDisk | undefined;
  readonly containers?: RuntimeDisk | undefined;
  /** The maximum and the current number of tasks. */
  readonly processes?: { readonly atMs: number; readonly max: number; readonly current: number } | undefined;
}

/** The usage of the node and its pods. */
export interface NodeStats extends NodeUsage {
  readonly nodeName: string;
  readonly startTime: string;
  readonly pods: readonly PodUsage[];
}

/** `cpu-and-memory` reads only what is cheap. */
export type StatsScope = 'all' | 'cpu-and-memory';

/** The kernel's counters of a process. */
export interface ProcessUsage {
  readonly cpuNanos: number;
  readonly rssBytes: number;
  readonly startMs: number;
  readonly pageFaults: number;
  readonly majorPageFaults: number;
}

/** A system container: a cgroup below each tree, or a single process. */
export type SystemPart = { readonly cgroup: string } | { readonly process: ProcessUsage };

export interface OpenFiles {
  readonly all: number;
  readonly sockets: number;
}

/** The read-only operations of the machine besides cgroups. */
export interface StatsMachine {
  /** Reads the space of the file system at a path; undefined if it does not respond. */
  space(path: string, signal: AbortSignal): Promise<Omit<DiskUsage, 'atMs'> | undefined>;
  /** Disposed with the kubelet; later calls start it again. */
  readonly directories: DirectoryUsages & Partial<Disposable>;
  /** The kubelet process. */
  self(): ProcessUsage;
  /** Finds the runtime by its socket; undefined if not found. */
  runtimeAt?(socket: string): Promise<SystemPart | undefined>;
  /** Reads the open files of a process, which may have exited. */
  openFiles(pid: number): Promise<OpenFiles>;
  readonly kernel: string;
}
