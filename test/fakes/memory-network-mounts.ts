import type { NetworkMount, NetworkMounts } from '../../src/volumes/index.ts';
import { unusable } from '../../src/volumes/index.ts';
import type { MemoryVolumeFiles } from './memory-volume-files.ts';

/** The network mounts of a machine that exists only in memory; their servers always respond. */
export class MemoryNetworkMounts implements NetworkMounts {
  readonly #files: MemoryVolumeFiles;
  /** Mount points that are broken because the server has deleted the directory. */
  readonly broken = new Set<string>();

  constructor(files: MemoryVolumeFiles) {
    this.#files = files;
  }

  async isMounted(directory: string): Promise<boolean> {
    return (await this.#files.mountAt(directory)) !== 'none';
  }

  async mount({ source, directory }: NetworkMount): Promise<void> {
    if (this.#files.entry(directory)?.kind !== 'directory')
      throw unusable(`mount failed: mount point ${directory} does not exist`);
    this.#files.mountFrom(source, directory);
    this.broken.delete(directory);
  }

  async unmount(directory: string): Promise<'done' | 'busy'> {
    const end = await this.#files.unmount(directory);
    if (!(await this.isMounted(directory))) this.broken.delete(directory);
    return end;
  }

  async check(directory: string): Promise<'answers' | 'broken'> {
    return this.broken.has(directory) ? 'broken' : 'answers';
  }
}
