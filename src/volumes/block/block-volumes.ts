import { posix } from 'node:path';
import { type Clock, KeyedMutex } from '../../lib/index.ts';
import type { Pod, PodUid } from '../../pods/index.ts';
import { unmountWithRetries } from '../files/remove-volumes.ts';
import type { VolumeFiles } from '../files/volume-files.ts';
import { atStage } from '../manager/mount-attempts.ts';
import { localPlugin, type StorageObserver, timed } from '../manager/volume-metrics.ts';
import { unusable } from '../projected/payload.ts';
import {
  checkedName,
  type DirectoryChain,
  endOf,
  firstNonDirectory,
  PodVolumePaths,
} from '../projected/payload-paths.ts';

export interface BlockVolumesDeps {
  readonly rootDir: string;
  /** Parent directory of the pod directories. */
  readonly podsDir: string;
  readonly files: Pick<
    VolumeFiles,
    'kindAt' | 'names' | 'readLink' | 'link' | 'unlink' | 'makeDirectory' | 'removeEmptyDirectory'
  >;
  readonly devices: BlockDevices;
  readonly clock: Clock;
  readonly observe: StorageObserver;
}

export type BlockPlugin = 'local-volume' | 'csi';

export interface BlockVolume {
  readonly plugin: BlockPlugin;
  /** Name of the PersistentVolume. */
  readonly name: string;
  /** Path of the block device. */
  readonly path: string;
}

/** Paths at which a device was mapped for a pod. */
export interface MappedDevice {
  readonly state: 'new' | 'existing';
  /** The global map path: a directory with one bound file per pod that uses the volume. */
  readonly global: string;
  /** Directory in the pod directory that contains the links to devices. */
  readonly ofPod: string;
}

const directoryMode = 0o750;
const plugins: readonly BlockPlugin[] = ['local-volume', 'csi'];

/*
 * The steps to map a device for a pod, undone in reverse order:
 *
 *   device bound to a file of the volume, named by the pod UID ──> link in the pod directory ──>
 *   device pinned by a loop device
 *
 * Each step can be detected by its path, so a restarted process can undo all steps of a crashed
 * one.
 */
/** Maps block volumes, which containers get as raw devices. */
export class BlockVolumes {
  readonly #deps: BlockVolumesDeps;
  readonly #lock = new KeyedMutex<PodUid>();
  /** Devices mapped by this process, by pod and by the file to which the device is bound. */
  readonly #mapped = new Map<PodUid, Map<string, string>>();

  constructor(deps: BlockVolumesDeps) {
    this.#deps = deps;
  }

  /** Path of the symbolic link to the device that containers get. */
  bindPathOf(uid: PodUid, plugin: BlockPlugin, name: string): string {
    return posix.join(this.#ofPod(uid, plugin), checkedName(name));
  }

  /**
   * Maps the device for the pod; idempotent. Rejects with VOLUME_UNUSABLE, which names the failed
   * step.
   */
  async map(pod: Pod, volume: BlockVolume, signal: AbortSignal): Promise<MappedDevice> {
    const { devices, files } = this.#deps;
    const { uid } = pod.metadata;
    const { plugin, name, path } = volume;
    using _held = await this.#lock.acquire(uid, signal);
    const device = await atStage('MapVolume.SetUpDevice failed', name, this.#find(path));
    const [global, ofPod] = [this.#global(plugin, name), this.#ofPod(uid, plugin)];
    const [shown, link] = [posix.join(global, uid), this.bindPathOf(uid, plugin, name)];
    const state = (await files.readLink(link)) === device ? 'existing' : 'new';
    if (state === 'existing' && (await this.#isMapped(uid, device, shown))) return { state, global, ofPod };
    const stage = 'MapVolume.MapBlockVolume failed';
    await atStage(stage, name, devices.bind(device, shown, signal));
    await atStage(stage, name, this.#link(uid, ofPod, link, device));
    await atStage(stage, name, devices.pin(shown, signal));
    this.#mapped.set(uid, (this.#mapped.get(uid) ?? new Map()).set(shown, device));
    return { state, global, ofPod };
  }

  /**
   * Whether the device is mapped. Checks only the bound file, because listing all mounts and
   * devices of the machine is far more expensive.
   */
  async #isMapped(uid: PodUid, device: string, shown: string): Promise<boolean> {
    if (this.#mapped.get(uid)?.get(shown) !== device) return false;
    return (await this.#deps.files.kindAt(shown)) === 'other';
  }

  /**
   * Removes all mappings of the pod once none of its containers runs; the UID is enough.
   * Idempotent. The data on the devices is kept. Rejects with VOLUME_REMOVE, which names the paths
   * still in use.
   */
  async remove(uid: PodUid, signal: AbortSignal): Promise<void> {
    using _held = await this.#lock.acquire(uid, signal);
    this.#mapped.delete(uid);
    for (const plugin of plugins) await this.#removeOf(uid, plugin, signal);
  }

  async #removeOf(uid: PodUid, plugin: BlockPlugin, signal: AbortSignal): Promise<void> {
    const { files } = this.#deps;
    const ofPod = this.#ofPod(uid, plugin);
    const isOurs = (await endOf(files, this.#chainTo(uid, plugin))) === 'ours';
    const linked = isOurs ? await files.names(ofPod) : [];
    // All volumes are searched, because a process killed early may have left a bound file without a
    // link.
    const known = await files.names(this.#globals(plugin));
    for (const name of new Set([...linked, ...known])) {
      const global = this.#global(plugin, name);
      const isShown = (await files.names(global)).includes(uid);
      if (isShown) await this.#unmap(posix.join(global, uid), signal);
      if (linked.includes(name)) await files.unlink(posix.join(ofPod, name));
      if (isShown) await this.#clean(plugin, global);
    }
    if (isOurs) await files.removeEmptyDirectory(ofPod);
  }

  /**
   * Detaches the loop device and unbinds the block device. The caller removes the link only after
   * this succeeds: while the link exists, the device still has to be unmapped.
   */
  async #unmap(shown: string, signal: AbortSignal): Promise<void> {
    const { devices, clock } = this.#deps;
    await devices.unpin(shown, signal);
    await unmountWithRetries(clock, shown, () => devices.unbind(shown, signal), signal);
  }

  async #clean(plugin: BlockPlugin, global: string): Promise<void> {
    const { files } = this.#deps;
    // The bound files of CSI volumes belong to the driver until it unstages the volume.
    if (plugin === 'csi') await files.removeEmptyDirectory(global);
    else if ((await files.names(global)).length === 0)
      await timed(this.#deps, 'unmap_device', [localPlugin], async () => {
        await files.removeEmptyDirectory(global);
        await files.removeEmptyDirectory(this.#globals(plugin));
      });
  }

  async #find(path: string): Promise<string> {
    const device = await this.#deps.devices.find(path);
    if (device === undefined) throw unusable(`${path} is no block device`);
    return device;
  }

  async #link(uid: PodUid, ofPod: string, link: string, device: string): Promise<void> {
    const { files } = this.#deps;
    const foreign = await firstNonDirectory(files, [...this.#chainOf(uid), ofPod]);
    if (foreign !== undefined) throw unusable(`${foreign} is not a directory`);
    if ((await files.readLink(link)) === device) return;
    await files.makeDirectory(ofPod, directoryMode);
    // The link belongs to a previous device, for example from before a reboot, so it is replaced.
    if ((await files.kindAt(link)) === 'link') await files.unlink(link);
    await files.link(device, link);
  }

  #chainOf(uid: PodUid): DirectoryChain {
    const { pod } = new PodVolumePaths(this.#deps.podsDir, uid);
    return [pod, posix.join(pod, 'volumeDevices')];
  }

  #chainTo(uid: PodUid, plugin: BlockPlugin): DirectoryChain {
    return [...this.#chainOf(uid), this.#ofPod(uid, plugin)];
  }

  #ofPod(uid: PodUid, plugin: BlockPlugin): string {
    const { pod } = new PodVolumePaths(this.#deps.podsDir, uid);
    return posix.join(pod, 'volumeDevices', `kubernetes.io~${plugin}`);
  }

  #globals(plugin: BlockPlugin): string {
    const directoryName = plugin === 'csi' ? 'kubernetes.io/csi' : `kubernetes.io~${plugin}`;
    return posix.join(this.#deps.rootDir, 'plugins', directoryName, 'volumeDevices');
  }

  /** The global map path of the volume; for CSI it is beside the driver's files. */
  #global(plugin: BlockPlugin, name: string): string {
    const device = posix.join(this.#globals(plugin), checkedName(name));
    return plugin === 'csi' ? posix.join(device, 'dev') : device;
  }
}

/** Block device operations of a machine. Failures are VOLUME_UNUSABLE or VOLUME_REMOVE errors. */
export interface BlockDevices {
  /** Resolves a path to a block device; undefined when there is none at the path. */
  find(path: string): Promise<string | undefined>;
  /** Returns the size in bytes of the block device at a path; undefined when there is none. */
  sizeOf(path: string): Promise<number | undefined>;
  /** Creates the file and bind-mounts the device on it. Idempotent. */
  bind(device: string, file: string, signal: AbortSignal): Promise<void>;
  /** Unmounts the device from the file and removes the file. A missing file counts as success. */
  unbind(file: string, signal: AbortSignal): Promise<'done' | 'busy'>;
  /**
   * Attaches a loop device to the bound file, so that the kernel cannot reuse the device number.
   * Idempotent.
   */
  pin(file: string, signal: AbortSignal): Promise<void>;
  /** Detaches the loop device of the file; none attached counts as success. */
  unpin(file: string, signal: AbortSignal): Promise<void>;
}
