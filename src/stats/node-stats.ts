import type { DirectoryUsages, FileCount, FileSystemSpace } from '../lib/index.ts';
import type { CgroupPressure, MemoryUsage } from './cgroup/cgroup-usage.ts';
import type { InterfaceUsage } from './cgroup/host-usage.ts';

/** Resource usage of a container, pod or node at one time. */
export interface Usage {
  readonly atMs: number;
  readonly cpuNanos: number | undefined;
  /** CPU usage rate over the last interval; undefined for the first sample. */
  readonly nanoCores: number | undefined;
  readonly memory: { readonly [part in keyof MemoryUsage]?: number | undefined } | undefined;
  readonly swapBytes: number | undefined;
  readonly swapAvailableBytes?: number | undefined;
  /** Pressure stall information; undefined when the kernel does not report it. */
  readonly pressure?: CgroupPressure | undefined;
}

export interface FileUsage extends FileCount {
  readonly atMs: number;
}

export interface DiskUsage extends FileSystemSpace {
  /** Identifies the file system of a path; undefined when unknown. */
  readonly device?: string | undefined;
  readonly atMs: number;
}

/** A file system used by the runtime, with the runtime's usage of it. */
export interface RuntimeDisk {
  /**
   * Space of the file system; undefined when the runtime does not report its path or the file
   * system does not respond.
   */
  readonly disk: DiskUsage | undefined;
  readonly own: FileUsage;
  readonly mountPoint: string;
}

/** Usage of a volume; unknown values are undefined. */
export interface VolumeUsage extends Partial<FileSystemSpace> {
  readonly atMs: number;
  readonly name: string;
  /** Health of the volume as reported by its CSI driver. */
  readonly health?: 'normal' | 'abnormal' | undefined;
  /** Whether the volume is ephemeral and on the same disk as the pod directories. */
  readonly isScratch: boolean;
  readonly claim?: { readonly namespace: string; readonly name: string } | undefined;
}

export interface ContainerUsage {
  readonly name: string;
  /** Start time of the container in RFC 3339 format. */
  readonly startTime: string | undefined;
  readonly usage: Usage;
  readonly rootfs?: FileUsage | undefined;
  readonly logs?: FileUsage | undefined;
}

export interface NetworkUsage {
  readonly atMs: number;
  /** Name of the interface of the default route. */
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
  /** Other files of the pod: those in its log directory, and its hosts file. */
  readonly otherFiles?: readonly FileUsage[] | undefined;
}

/** Usage of the node without its pods. */
export interface NodeUsage {
  readonly usage: Usage;
  /** Total memory of the machine and its MemAvailable. */
  readonly machineMemory?:
    | { readonly totalBytes: number; readonly availableBytes: number | undefined }
    | undefined;
  /** Usage of the system containers: kubelet, runtime, misc, and pods. */
  readonly system: readonly ContainerUsage[];
  readonly network?: NetworkUsage | undefined;
  /** The file system that contains the pod directories. */
  readonly disk?: DiskUsage | undefined;
  /** The file systems of images and of writable container layers. */
  readonly images?: RuntimeDisk | undefined;
  readonly containers?: RuntimeDisk | undefined;
  /** Maximum and current number of tasks of the machine. */
  readonly processes?: { readonly atMs: number; readonly max: number; readonly current: number } | undefined;
}

/** Usage of the node and its pods. */
export interface NodeStats extends NodeUsage {
  readonly nodeName: string;
  readonly startTime: string;
  readonly pods: readonly PodUsage[];
}

/** Which stats to read; `cpu-and-memory` reads only what is cheap. */
export type StatsScope = 'all' | 'cpu-and-memory';

/** Usage counters of a single process from the kernel. */
export interface ProcessUsage {
  readonly cpuNanos: number;
  readonly rssBytes: number;
  readonly startMs: number;
  readonly pageFaults: number;
  readonly majorPageFaults: number;
}

/** A system container: the path of a cgroup below each tree, or a single process. */
export type SystemPart = { readonly cgroup: string } | { readonly process: ProcessUsage };

export interface OpenFiles {
  readonly all: number;
  readonly sockets: number;
}

/** Read-only access to stats of the machine that are not in cgroups. */
export interface StatsMachine {
  /** Reads the space of the file system at a path; undefined when it does not respond. */
  space(path: string, signal: AbortSignal): Promise<Omit<DiskUsage, 'atMs'> | undefined>;
  /**
   * Counts files of directories in a worker thread, which is stopped with the kubelet; a later call
   * starts a new thread.
   */
  readonly directories: DirectoryUsages & Partial<Disposable>;
  /** Reads usage counters of the kubelet process. */
  self(): ProcessUsage;
  /** Finds the runtime's process or cgroup by its socket; undefined when it is not found. */
  runtimeAt?(socket: string): Promise<SystemPart | undefined>;
  /** Reads the open files of a process, which may have exited. */
  openFiles(pid: number): Promise<OpenFiles>;
  readonly kernel: string;
}
