import type { InterfaceUsage, MemoryUsage } from '../../resources/index.ts';

/** How much has been used by somebody, at one moment. */
export interface Usage {
  readonly atMs: number;
  readonly cpuNanos: number | undefined;
  /** How much is used per second, over the last while; undefined at the first look. */
  readonly nanoCores: number | undefined;
  readonly memory: { readonly [part in keyof MemoryUsage]?: number | undefined } | undefined;
  readonly swapBytes: number | undefined;
  readonly swapAvailableBytes?: number | undefined;
}

export interface FileUsage {
  readonly atMs: number;
  readonly usedBytes: number;
  readonly inodesUsed: number;
}

export interface DiskUsage extends FileUsage {
  readonly capacityBytes: number;
  readonly availableBytes: number;
  readonly inodes: number;
  readonly inodesFree: number;
}

/** What a volume of a pod holds, as far as it is known. */
export interface VolumeUsage extends Partial<Omit<DiskUsage, 'atMs'>> {
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
}

/** What a node and its pods have used. */
export interface NodeStats {
  readonly nodeName: string;
  readonly startTime: string;
  readonly usage: Usage;
  readonly system: readonly ContainerUsage[];
  readonly pods: readonly PodUsage[];
  readonly network?: NetworkUsage | undefined;
  /** Where pods write to. */
  readonly disk?: DiskUsage | undefined;
  /** Where images lie, and what they take there. */
  readonly images?: { readonly disk: DiskUsage; readonly own: FileUsage } | undefined;
  readonly processes?: { readonly max: number; readonly current: number } | undefined;
}

/** Whether only what is cheap to find is wanted. */
export type StatsWish = 'all' | 'cpu-and-memory';
