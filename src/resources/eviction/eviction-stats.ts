import type { Pod, PodUid } from '../../pods/index.ts';

/** What is left of something at one moment. */
export interface SignalObservation {
  readonly atMs: number;
  readonly available: number;
  readonly capacity: number;
}

export interface MemoryObservation extends SignalObservation {
  /** What the kernel itself says could be had without swapping, where it says so. */
  readonly kernelAvailable?: number | undefined;
}

export interface DiskObservation {
  readonly bytes: SignalObservation;
  /** Undefined of file systems that do not count them. */
  readonly inodes: SignalObservation | undefined;
}

/** What is left of the node; each is left out where it cannot be known. */
export interface NodeObservation {
  readonly memory?: MemoryObservation | undefined;
  /** Of what pods together may have. */
  readonly podsMemory?: SignalObservation | undefined;
  /** Where pods write to. */
  readonly nodefs?: DiskObservation | undefined;
  /** Where images lie. */
  readonly imagefs?: DiskObservation | undefined;
  /** Where containers write to. */
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

/** What a pod uses; what is not known is left out. */
export interface PodResourceUsage {
  /** Its working set. */
  readonly memoryBytes: number | undefined;
  readonly processes: number | undefined;
  readonly containers: readonly ContainerResourceUsage[];
  /** By the names the pod has for them. */
  readonly volumes: ReadonlyMap<string, FilesUsage>;
  /** What else lies on the disk because of it, such as its hosts file. */
  readonly others?: FilesUsage | undefined;
}

/**
 * Where containers and their images lie: on the disk of the node, both on one of their own, or only the images on one of
 * their own.
 */
export type DiskLayout = 'single' | 'dedicated' | 'split';

/** Finds out what is left and what is used, anew each time it is asked. */
export interface EvictionStats {
  /** Asked until it answers, and once: disks are not moved while a node runs. */
  layout(signal: AbortSignal): Promise<DiskLayout>;
  /** Cheap: it is asked every second while the node is short of something. */
  node(signal: AbortSignal): Promise<NodeObservation>;
  /** Pods of which nothing can be said are left out. */
  pods(
    pods: readonly Pod[],
    needed: StatsRequirements,
    signal: AbortSignal,
  ): Promise<ReadonlyMap<PodUid, PodResourceUsage>>;
}

export interface StatsRequirements {
  /**
   * What containers have written over their images by then is to be known: runtimes count that now and then only. It is
   * waited for as long as that may take, and not for ever.
   */
  readonly layersAtMs?: number | undefined;
}
