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
  /** Where the directories of pods are. */
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
  /** Of the PersistentVolume. */
  readonly name: string;
  /** Where it is to be found. */
  readonly path: string;
}

/** Where a pod was given a device. */
export interface MappedDevice {
  readonly state: 'new' | 'there';
  /** Where the devices of all pods that have the volume are shown. */
  readonly global: string;
  /** Where the links of the pod are. */
  readonly ofPod: string;
}

const directoryMode = 0o750;
const plugins: readonly BlockPlugin[] = ['local-volume', 'csi'];

/*
 * What is done for a pod, and undone in reverse:
 *
 *   device shown at a file of the volume, named by the pod ──> link in the pod ──> device held by the kernel
 *
 * Each is found by its place, so that whoever comes after a crash undoes whatever there is.
 */
/** Volumes that are given to containers as the devices they are. */
export class BlockVolumes {
  readonly #deps: BlockVolumesDeps;
  readonly #lock = new KeyedMutex<PodUid>();
  /** What this process has done for pods: the device by the file it is shown at. */
  readonly #mapped = new Map<PodUid, Map<string, string>>();

  constructor(deps: BlockVolumesDeps) {
    this.#deps = deps;
  }

  /** The link to the device, which containers are given. */
  placeOf(uid: PodUid, plugin: BlockPlugin, name: string): string {
    return posix.join(this.#ofPod(uid, plugin), checkedName(name));
  }

  /** May be repeated. Rejects with VOLUME_UNUSABLE, naming the stage. */
  async map(pod: Pod, volume: BlockVolume, signal: AbortSignal): Promise<MappedDevice> {
    const { devices, files } = this.#deps;
    const { uid } = pod.metadata;
    const { plugin, name, path } = volume;
    using _held = await this.#lock.acquire(uid, signal);
    const device = await atStage('MapVolume.SetUpDevice failed', name, this.#find(path));
    const [global, ofPod] = [this.#global(plugin, name), this.#ofPod(uid, plugin)];
    const [shown, link] = [posix.join(global, uid), this.placeOf(uid, plugin, name)];
    const state = (await files.readLink(link)) === device ? 'there' : 'new';
    if (state === 'there' && (await this.#isMapped(uid, device, shown))) return { state, global, ofPod };
    const stage = 'MapVolume.MapBlockVolume failed';
    await atStage(stage, name, devices.bind(device, shown, signal));
    await atStage(stage, name, this.#link(uid, ofPod, link, device));
    await atStage(stage, name, devices.pin(shown, signal));
    this.#mapped.set(uid, (this.#mapped.get(uid) ?? new Map()).set(shown, device));
    return { state, global, ofPod };
  }

  /** One look at the file tells whether it is still shown: all mounts and devices of the machine are many more. */
  async #isMapped(uid: PodUid, device: string, shown: string): Promise<boolean> {
    if (this.#mapped.get(uid)?.get(shown) !== device) return false;
    return (await this.#deps.files.kindAt(shown)) === 'other';
  }

  /**
   * To be called once nothing of the pod runs, also for pods of which nothing but the UID is known; may be repeated. What
   * is on the devices stays. Rejects with VOLUME_REMOVE, naming the paths, for what is in use.
   */
  async remove(uid: PodUid, signal: AbortSignal): Promise<void> {
    using _held = await this.#lock.acquire(uid, signal);
    this.#mapped.delete(uid);
    for (const plugin of plugins) await this.#removeOf(uid, plugin, signal);
  }

  async #removeOf(uid: PodUid, plugin: BlockPlugin, signal: AbortSignal): Promise<void> {
    const { files } = this.#deps;
    const ofPod = this.#ofPod(uid, plugin);
    const isOurs = (await endOf(files, this.#waysTo(uid, plugin))) === 'ours';
    const linked = isOurs ? await files.names(ofPod) : [];
    // Whoever was killed may not have come as far as to the link.
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

  /** The link stays as long as this fails: it tells that there is something to undo. */
  async #unmap(shown: string, signal: AbortSignal): Promise<void> {
    const { devices, clock } = this.#deps;
    await devices.unpin(shown, signal);
    await unmountWithRetries(clock, shown, () => devices.unbind(shown, signal), signal);
  }

  async #clean(plugin: BlockPlugin, global: string): Promise<void> {
    const { files } = this.#deps;
    // Those of drivers are theirs until they are unstaged.
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
    const foreign = await firstNonDirectory(files, [...this.#waysOf(uid), ofPod]);
    if (foreign !== undefined) throw unusable(`${foreign} is no directory`);
    if ((await files.readLink(link)) === device) return;
    await files.makeDirectory(ofPod, directoryMode);
    // One of an earlier device, as after the machine was started anew.
    if ((await files.kindAt(link)) === 'link') await files.unlink(link);
    await files.link(device, link);
  }

  #waysOf(uid: PodUid): DirectoryChain {
    const { pod } = new PodVolumePaths(this.#deps.podsDir, uid);
    return [pod, posix.join(pod, 'volumeDevices')];
  }

  #waysTo(uid: PodUid, plugin: BlockPlugin): DirectoryChain {
    return [...this.#waysOf(uid), this.#ofPod(uid, plugin)];
  }

  #ofPod(uid: PodUid, plugin: BlockPlugin): string {
    const { pod } = new PodVolumePaths(this.#deps.podsDir, uid);
    return posix.join(pod, 'volumeDevices', `kubernetes.io~${plugin}`);
  }

  #globals(plugin: BlockPlugin): string {
    const way = plugin === 'csi' ? 'kubernetes.io/csi' : `kubernetes.io~${plugin}`;
    return posix.join(this.#deps.rootDir, 'plugins', way, 'volumeDevices');
  }

  /** The driver's own things are beside the devices. */
  #global(plugin: BlockPlugin, name: string): string {
    const place = posix.join(this.#globals(plugin), checkedName(name));
    return plugin === 'csi' ? posix.join(place, 'dev') : place;
  }
}

/** Devices of a machine as they are given to pods. Failures are VOLUME_UNUSABLE or VOLUME_REMOVE errors. */
export interface BlockDevices {
  /** What device a path leads to in the end; undefined when it leads to none. */
  find(path: string): Promise<string | undefined>;
  /** How large the device is that a path leads to; undefined when it leads to none. */
  sizeOf(path: string): Promise<number | undefined>;
  /** Shows the device at the file, too, which is made. May be repeated. */
  bind(device: string, file: string, signal: AbortSignal): Promise<void>;
  /** Undoes it, and takes the file away; fine when there is none. */
  unbind(file: string, signal: AbortSignal): Promise<'done' | 'busy'>;
  /** Holds the device that is shown at the file, so that no other can take its number. May be repeated. */
  pin(file: string, signal: AbortSignal): Promise<void>;
  /** Fine when nothing holds it. */
  unpin(file: string, signal: AbortSignal): Promise<void>;
}
