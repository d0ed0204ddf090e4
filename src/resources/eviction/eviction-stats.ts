import type { Pod, PodUid } from '../../pods/index.ts';

/** The available amount and the capacity of a resource at one time. */
export interface SignalObservation {
  readonly atMs: number;
  readonly available: number;
  readonly capacity: number;
}

export interface MemoryObservation extends SignalObservation {
  /**
   * The available memory according to the kernel's MemAvailable; undefined if the kernel does not
   * publish this value.
   */
  readonly kernelAvailable?: number | undefined;
}

export interface DiskObservation {
  readonly bytes: SignalObservation;
  /** The free and total inodes; undefined for file systems without an inode limit. */
  readonly inodes: SignalObservation | undefined;
}

/** The available resources of the node; a resource whose amount is unknown is undefined. */
export interface NodeObservation {
  readonly memory?: MemoryObservation | undefined;
  /** The available memory of the cgroup kubepods, which contains all pods. */
  readonly podsMemory?: SignalObservation | undefined;
  /** The file system for the volumes and logs of pods. */
  readonly nodefs?: DiskObservation | undefined;
  /** The file system for images. */
  readonly imagefs?: DiskObservation | undefined;
  /** The file system for writable container layers. */
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

/** The resource usage of a pod; a value that is unknown is undefined. */
export interface PodResourceUsage {
  /** The working set memory of the pod. */
  readonly memoryBytes: number | undefined;
  readonly processes: number | undefined;
  readonly containers: readonly ContainerResourceUsage[];
  /** The disk usage by volume name. */
  readonly volumes: ReadonlyMap<string, FilesUsage>;
  /** The disk usage of the pod's other files, such as its hosts file. */
  readonly others?: FilesUsage | undefined;
}

/**
 * The layout of file systems: `single`: images and containers are on nodefs; `dedicated`: both are
 * on one other file system; `split`: only the images are on another file system.
 */
export type DiskLayout = 'single' | 'dedicated' | 'split';

/** Provides the current resource usage, read at each call. */
export interface EvictionStats {
  /**
   * Returns the layout of file systems. Retried until it succeeds and then not called again,
   * because the layout does not change while a node runs.
   */
  layout(signal: AbortSignal): Promise<DiskLayout>;
  /**
   * Reads the available resources of the node. Must be cheap: called every second near a threshold.
   */
  node(signal: AbortSignal): Promise<NodeObservation>;
  /** Reads the usage of pods; pods without stats are omitted. */
  pods(
    pods: readonly Pod[],
    needed: StatsRequirements,
    signal: AbortSignal,
  ): Promise<ReadonlyMap<PodUid, PodResourceUsage>>;
}

export interface StatsRequirements {
  /**
   * The layer sizes must have been measured at or after this time; runtimes measure layer sizes
   * only periodically. The wait for newer sizes is limited.
   */
  readonly layersAtMs?: number | undefined;
}
