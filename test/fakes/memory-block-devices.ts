import { posix } from 'node:path';
import type { BlockDevices } from '../../src/volumes/index.ts';
import { removalBlocked, unusable } from '../../src/volumes/index.ts';
import type { MemoryVolumeFiles } from './memory-volume-files.ts';

const directoryMode = 0o750;
const fileMode = 0o640;
/** The size of every block device. */
const deviceBytes = 1 << 30;

/**
 * The block devices of a machine that exists only in memory: where they are mapped, and which are
 * held open.
 */
export class MemoryBlockDevices implements BlockDevices {
  readonly #files: MemoryVolumeFiles;
  /** The files whose block devices are held open. */
  readonly pinned = new Set<string>();

  constructor(files: MemoryVolumeFiles) {
    this.#files = files;
  }

  async find(path: string): Promise<string | undefined> {
    const found = await this.#files.behind(path);
    return found?.kind === 'block-device' ? found.path : undefined;
  }

  async sizeOf(path: string): Promise<number | undefined> {
    return (await this.find(path)) === undefined ? undefined : deviceBytes;
  }

  async bind(device: string, file: string): Promise<void> {
    const found = this.#files.entry(device);
    if (found?.kind !== 'device') throw unusable(`mount failed: ${device} is no device`);
    await this.#files.makeDirectory(posix.dirname(file), directoryMode);
    const shown = this.#files.entry(file);
    if (shown?.kind === 'device' && shown.device === found.device) return;
    if ((await this.#files.mountAt(file)) !== 'none')
      throw unusable(`${file} is a mount point of something else`);
    if (shown === undefined) await this.#files.writeFile(file, Buffer.alloc(0), { mode: fileMode });
    this.#files.showDevice(found.device, file);
  }

  async unbind(file: string): Promise<'done' | 'busy'> {
    const isMounted = (await this.#files.mountAt(file)) !== 'none';
    // Another process still holds the block device open through this file.
    if (isMounted && this.pinned.has(file)) return 'busy';
    if (isMounted && (await this.#files.unmount(file)) === 'busy') return 'busy';
    const found = this.#files.entry(file);
    if (found === undefined) return 'done';
    if (found.kind !== 'file' || found.data.length > 0)
      throw removalBlocked([`${file} was not put there by this node`]);
    await this.#files.unlink(file);
    return 'done';
  }

  async pin(file: string): Promise<void> {
    if (this.#files.entry(file)?.kind !== 'device') throw unusable(`losetup -f ${file} failed: no device`);
    this.pinned.add(file);
  }

  async unpin(file: string): Promise<void> {
    this.pinned.delete(file);
  }
}
