/** What was found on a disk. */
export type DiskContent =
  | { readonly kind: 'nothing' }
  | { readonly kind: 'file-system'; readonly type: string }
  /** Or anything else that is somebody's. */
  | { readonly kind: 'partitions' };

export interface DiskMount {
  readonly device: string;
  readonly directory: string;
  readonly fsType: string;
  readonly options: readonly string[];
}

/** The disks of a machine, by programs that end in their time. Failures are VOLUME_UNUSABLE errors. */
export interface Disks {
  /** Never answers `nothing` for what it cannot read. */
  probe(device: string, signal: AbortSignal): Promise<DiskContent>;
  /** Makes a file system; what was there is lost. */
  format(device: string, fsType: string, signal: AbortSignal): Promise<void>;
  /** Mends what can be mended without asking. */
  check(device: string, signal: AbortSignal): Promise<void>;
  /** Makes the file system that is mounted at the directory as large as its disk is by now. */
  grow(disk: Pick<DiskMount, 'device' | 'directory'>, signal: AbortSignal): Promise<void>;
  mount(mount: DiskMount, signal: AbortSignal): Promise<void>;
  /** Where else what is mounted at the directory is mounted, too. */
  otherMounts(directory: string): Promise<readonly string[]>;
  /** The device that is mounted at the directory; undefined when none is, or it cannot be told. */
  deviceAt(directory: string): Promise<string | undefined>;
  /** Whether somebody has the device for himself, such as a mount that is not seen from here. */
  isHeld(device: string, signal: AbortSignal): Promise<boolean>;
}
