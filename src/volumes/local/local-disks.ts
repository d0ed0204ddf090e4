import { posix } from 'node:path';
import { type Clock, describeError, KeyedMutex } from '../../lib/index.ts';
import type { BoundVolume, LocalSource } from '../claims/bound-volume.ts';
import type { ExpandableVolume } from '../claims/expansions.ts';
import { removalBlocked } from '../files/remove-volumes.ts';
import type { VolumeFiles } from '../files/volume-files.ts';
import { atStage } from '../manager/mount-attempts.ts';
import { splitMountOptions } from '../manager/mount-options.ts';
import { localPlugin, type StorageObserver, timed } from '../manager/volume-metrics.ts';
import { unusable } from '../projected/payload.ts';
import type { Disks } from './format-and-mount.ts';
import { type DiskVolume, formatAndMount } from './format-and-mount.ts';
import type { LocalVolumes } from './local-volumes.ts';

export interface LocalDisksDeps {
  readonly rootDir: string;
  readonly files: VolumeFiles;
  readonly disks: Disks;
  readonly clock: Clock;
  readonly observe: StorageObserver;
}

const directoryMode = 0o750;
/**
 * The directory of volume plugins below the kubelet's root directory; mounts below it do not count
 * as use of a disk by a pod.
 */
const pluginsDir = 'plugins/kubernetes.io';

/**
 * Mounts the disks of local PersistentVolumes once for the node; they are then bind-mounted into
 * pod directories. The content belongs to the user.
 */
export class LocalDisks {
  readonly #deps: LocalDisksDeps;
  /**
   * Serializes operations on a disk, so that it is not unmounted while a pod is about to use it.
   */
  readonly #lock = new KeyedMutex<string>();

  /** Devices of disks that are being unmounted, by mount path. */
  readonly #leaving = new Map<string, string>();

  constructor(deps: LocalDisksDeps) {
    this.#deps = deps;
  }

  /** Mounts the disk if necessary and keeps it mounted while `work` runs with its mount path. */
  async with<T>(
    name: string,
    volume: Omit<DiskVolume, 'directory'>,
    work: (directory: string) => Promise<T>,
    signal: AbortSignal,
  ): Promise<T> {
    const { files, disks } = this.#deps;
    const directory = posix.join(this.#mounts, name);
    using _held = await this.#lock.acquire(directory, signal);
    this.#leaving.delete(directory);
    if ((await files.mountAt(directory)) === 'none') {
      await files.makeDirectory(directory, directoryMode);
      const mounting = formatAndMount(disks, { ...volume, directory }, signal);
      await atStage('MountVolume.MountDevice failed', name, mounting).catch(async (error: unknown) => {
        await this.#unmount(directory, new AbortController().signal);
        throw error;
      });
    }
    return await work(directory);
  }

  /**
   * Grows the file system to the size of the disk while it is in use. Rejects with VOLUME_UNUSABLE.
   */
  async grow(name: string, device: string, signal: AbortSignal): Promise<void> {
    const { files, disks } = this.#deps;
    const directory = posix.join(this.#mounts, name);
    using _held = await this.#lock.acquire(directory, signal);
    if ((await files.mountAt(directory)) === 'none')
      throw unusable(`${device} cannot grow as it must be mounted at ${directory}: it is not`);
    await disks.grow({ device, directory }, signal);
  }

  /**
   * Unmounts the disks that no pod uses, including those of previous kubelets. Rejects with
   * VOLUME_REMOVE when one of the named disks cannot be unmounted; others are retried by the next
   * sweep.
   */
  async sweep(names: readonly string[], signal: AbortSignal): Promise<void> {
    const { files } = this.#deps;
    const problems: string[] = [];
    for (const name of await files.names(this.#mounts)) {
      const directory = posix.join(this.#mounts, name);
      if (this.#lock.isHeld(directory)) continue;
      using _held = await this.#lock.acquire(directory, signal);
      const problem = await this.#unmountUnused(directory, signal);
      if (problem !== undefined && names.includes(name)) problems.push(problem);
    }
    if (problems.length > 0) throw removalBlocked(problems);
  }

  /** Unmounts a disk when no pod uses it; returns what prevents that. */
  async #unmountUnused(directory: string, signal: AbortSignal): Promise<string | undefined> {
    try {
      if ((await this.#users(directory)).length > 0) return undefined;
      await this.#recordDevice(directory);
      await timed(this.#deps, 'unmount_device', [localPlugin], async () => {
        if ((await this.#unmount(directory, signal)) === 'busy')
          throw removalBlocked([`${directory} is still in use`]);
      });
      return undefined;
    } catch (error) {
      signal.throwIfAborted();
      return describeError(error);
    }
  }

  /**
   * Records the disk's device before the unmount, so that its release can be checked afterwards. A
   * disk that is also mounted for another volume is not recorded, because it stays in use.
   */
  async #recordDevice(directory: string): Promise<void> {
    const { disks } = this.#deps;
    const device = await disks.deviceAt(directory);
    if (device === undefined) return;
    if ((await disks.otherMounts(directory)).length === 0) this.#leaving.set(directory, device);
    else this.#leaving.delete(directory);
  }

  /**
   * Called after the unmount of a disk; throws until the disk's device is released, because the
   * disk may still be mounted in another mount namespace.
   */
  async #checkFree(directory: string, signal: AbortSignal): Promise<void> {
    const device = this.#leaving.get(directory);
    if (device === undefined) return;
    if (await this.#deps.disks.isHeld(device, signal))
      throw removalBlocked([`${device}: the device is in use when it was no longer expected to be in use`]);
    this.#leaving.delete(directory);
  }

  get #mounts(): string {
    return posix.join(this.#deps.rootDir, pluginsDir, 'local-volume/mounts');
  }

  async #users(directory: string): Promise<readonly string[]> {
    const otherMounts = await this.#deps.disks.otherMounts(directory);
    return otherMounts.filter((point) => !point.includes(`/${pluginsDir}/`));
  }

  async #unmount(directory: string, signal: AbortSignal): Promise<'done' | 'busy'> {
    const { files } = this.#deps;
    if ((await files.kindAt(directory)) !== 'directory') return 'done';
    if ((await files.mountAt(directory)) !== 'none' && (await files.unbind(directory, signal)) === 'busy')
      return 'busy';
    await this.#checkFree(directory, signal);
    if ((await files.removeEmptyDirectory(directory)) === 'not-empty')
      throw removalBlocked([`${directory} has content that was not put there by this node`]);
    return 'done';
  }
}

/** Key of a local volume, unique among all volumes of all plugins. */
export function localKey(name: string): string {
  return `${localPlugin.name}/${name}`;
}

/**
 * Returns how the expansion of a local volume is completed: the file system of a mounted disk grows
 * to the size of the disk; for a block device or a directory only the claim is updated.
 */
export function localExpansion(
  local: Pick<LocalVolumes, 'grow'> | undefined,
  bound: Omit<BoundVolume, 'source'>,
  { path, fsType }: LocalSource,
): ExpandableVolume {
  const { name, claim, mountOptions, mode } = bound;
  const readOnly = bound.readOnly || splitMountOptions(mountOptions).includes('ro');
  const expand = async (_bytes: bigint, signal: AbortSignal) => {
    if (mode !== 'block') await local?.grow({ ...bound, path, fsType }, signal);
  };
  return { name, claim, readOnly, key: localKey(name), plugin: localPlugin, expand };
}
