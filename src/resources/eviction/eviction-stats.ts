import type { Pod, PodUid } from '../../pods/index.ts';

/** The available amount and the capacity of a resource at one time. */
export interface SignalObservation {
  readonly atMs: number;
  readonly available: number;
  readonly capacity: number;
}

export interface MemoryObservation extends SignalObservation {
  /** MemAvailable of the kernel, if it is published. */
  readonly kernelAvailable?: number | undefined;
}

export interface DiskObservation {
  readonly bytes: SignalObservation;
  /** Undefined for file systems without an inode limit. */
  readonly inodes: SignalObservation | undefined;
}

/** The available resources of the node; undefined if unknown. */
export interface NodeObservation {
  readonly memory?: MemoryObservation | undefined;
  /** The memory of kubepods. */
  readonly podsMemory?: SignalObservation | undefined;
  /** The file system of pods. */
  readonly nodefs?: DiskObservation | undefined;
  /** The file system of images. */
  readonly imagefs?: DiskObservation | undefined;
  /** The file system of writable layers. */
  readonly containerfs?: DiskObservation | undefined;
  readonly pids?: SignalObservation | undefined;
}

export interface FilesUsage {
  readonly bytes: number;
  readonly inodes: number;
}

export interface ContainerResourceUsage {
  readonly name: string;
  readonly memoryBytes: number | undefined;
  readonly rootfs: FilesUsage | undefined;
  readonly logs: FilesUsage | undefined;
}

/** The resource usage of a pod; undefined if unknown. */
export interface PodResourceUsage {
  /** The working set. */
  readonly memoryBytes: number | undefined;
  readonly processes: number | undefined;
  readonly containers: readonly ContainerResourceUsage[];
  /** By volume name. */
  readonly volumes: ReadonlyMap<string, FilesUsage>;
  /** Other files on the disk, such as the hosts file. */
  readonly others?: FilesUsage | undefined;
}

/**
 * The file systems of images and containers: the node's one for both, a dedicated one for both, or
 * a dedicated one for images only.
 */
export type DiskLayout = 'single' | 'dedicated' | 'split';

/** Reads the current resource usage at each call. */
export interface EvictionStats {
  /**
   * Retried until it succeeds, then called no more: file systems do not change while a node runs.
   */
  layout(signal: AbortSignal): Promise<DiskLayout>;
  /** Cheap: called every second near a threshold. */
  node(signal: AbortSignal): Promise<NodeObservation>;
  /** Pods without stats are omitted. */
  pods(
    pods: readonly Pod[],
    needed: StatsRequirements,
    signal: AbortSignal,
  ): Promise<ReadonlyMap<PodUid, PodResourceUsage>>;
}

export interface StatsRequirements {
  /**
   * The layer sizes must be at least from this time; runtimes update them only periodically. The
   * wait is limited.
   */
  readonly layersAtMs?: number | undefined;
}
