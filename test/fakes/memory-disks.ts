import type { DiskContent, DiskMount, Disks } from '../../src/volumes/index.ts';
import { unusable } from '../../src/volumes/index.ts';
import type { MemoryVolumeFiles } from './memory-volume-files.ts';

/** The disks of a machine that exists only in memory: their content, and where they are mounted. */
export class MemoryDisks implements Disks {
  readonly #files: MemoryVolumeFiles;
  readonly #contents = new Map<string, DiskContent>();
  /** Devices that another process holds open. */
  readonly held = new Set<string>();
  readonly #bytes = new Map<string, { disk: number; files: number }>();

  constructor(files: MemoryVolumeFiles) {
    this.#files = files;
  }

  /** Adds a disk with its block device. */
  add(device: string, content: DiskContent): void {
    this.#files.put(device, { kind: 'device', device, mode: 0o660, owner: 0, group: 0 });
    this.#contents.set(device, content);
  }

  /** Returns the size of the disk and the size of its file system. */
  sizesOf(device: string): { readonly disk: number; readonly files: number } {
    return this.#bytes.get(device) ?? { disk: 0, files: 0 };
  }

  /** Resizes the disk, but not its file system. */
  resize(device: string, bytes: number): void {
    this.#bytes.set(device, { ...this.sizesOf(device), disk: bytes });
  }

  async grow({ device, directory }: Pick<DiskMount, 'device' | 'directory'>): Promise<void> {
    await this.probe(device);
    if (!this.#files.mounts().some((mount) => mount.origin === device && mount.directory === directory))
      throw unusable(`resize of device ${device} failed: it is not mounted at ${directory}`);
    const { disk } = this.sizesOf(device);
    this.#bytes.set(device, { disk, files: disk });
  }

  async probe(device: string): Promise<DiskContent> {
    const content = this.#contents.get(device);
    if (content === undefined) throw unusable(`blkid ${device} failed: there is no such disk`);
    return content;
  }

  async format(device: string, fsType: string): Promise<void> {
    await this.probe(device);
    if (this.#isMounted(device)) throw unusable(`format of disk "${device}" failed: it is mounted`);
    this.#contents.set(device, { kind: 'file-system', type: fsType });
  }

  async check(device: string): Promise<void> {
    await this.probe(device);
  }

  async mount({ device, directory, fsType }: DiskMount): Promise<void> {
    const found = await this.probe(device);
    if (found.kind !== 'file-system' || found.type !== fsType)
      throw unusable(`mount failed: wrong fs type on ${device}`);
    this.#files.mountFrom(device, directory);
  }

  async otherMounts(directory: string): Promise<readonly string[]> {
    const mounts = this.#files.mounts();
    const own = mounts.findLast((mount) => mount.directory === directory)?.origin;
    if (own === undefined) return [];
    return mounts
      .filter((mount) => mount.origin === own && mount.directory !== directory)
      .map((mount) => mount.directory);
  }

  async deviceAt(directory: string): Promise<string | undefined> {
    return this.#files.mounts().findLast((mount) => mount.directory === directory)?.origin;
  }

  async isHeld(device: string): Promise<boolean> {
    return this.held.has(device) || this.#isMounted(device);
  }

  #isMounted(device: string): boolean {
    return this.#files.mounts().some(({ origin }) => origin === device);
  }
}
