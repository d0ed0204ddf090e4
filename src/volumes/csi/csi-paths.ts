import { createHash } from 'node:crypto';
import { posix } from 'node:path';
import { mayBePodUid, type PodUid } from '../../pods/index.ts';
import type { VolumePlugin } from '../manager/volume-metrics.ts';
import { unusable } from '../projected/payload.ts';
import { type DirectoryChain, PodVolumePaths } from '../projected/payload-paths.ts';
import type { CsiVolume } from './csi-request.ts';

const csiKind = 'kubernetes.io~csi';
const dataFile = 'vol_data.json';
/** Directories beside those of block volumes; volumes with these names are rejected. */
const [stagingName, publishName] = ['staging', 'publish'];

/**
 * The paths of CSI volumes. They equal those of the Go kubelet, so that either kubelet can take
 * over the other's volumes.
 */
export class CsiPaths {
  readonly podsDir: string;
  /** Parent directory of the staging directories (global mounts), by driver. */
  readonly staged: string;
  /** Parent directory of block volumes, beside the directories of drivers. */
  readonly devices: string;

  constructor(rootDir: string, podsDir: string) {
    this.podsDir = podsDir;
    this.staged = posix.join(rootDir, 'plugins/kubernetes.io/csi');
    this.devices = posix.join(this.staged, 'volumeDevices');
  }

  /** Parent directory of all CSI volumes of a pod. */
  ofPod(uid: PodUid): string {
    return posix.join(new PodVolumePaths(this.podsDir, uid).volumes, csiKind);
  }

  /** The chain of directories from the pod directory to its CSI volumes. */
  chainTo(uid: PodUid): DirectoryChain {
    const { pod, volumes } = new PodVolumePaths(this.podsDir, uid);
    return [pod, volumes, this.ofPod(uid)];
  }

  volume(uid: PodUid, name: string): CsiVolumePaths {
    return volumePathsIn(posix.join(this.ofPod(uid), checked(name)), 'mount');
  }

  /** Whether the path may be the mount path of a CSI volume of a pod. */
  isVolume(mount: string): boolean {
    const [uid = '', volumes, kind] = posix.relative(this.podsDir, mount).split('/');
    return volumes === 'volumes' && kind === csiKind && mayBePodUid(uid);
  }

  /** Returns the pod and the volume of a block device's link; undefined for any other path. */
  deviceAt(link: string): { readonly uid: PodUid; readonly name: string } | undefined {
    const [uid = '', devices, kind, name = '', ...more] = posix.relative(this.podsDir, link).split('/');
    const isDevice = devices === 'volumeDevices' && kind === csiKind && name !== '' && more.length === 0;
    return isDevice && mayBePodUid(uid) ? { uid, name } : undefined;
  }

  /** Path at which the volume is published for the pod. */
  shown(uid: PodUid, { name, shownAs }: Pick<CsiVolume, 'name' | 'shownAs'>): string {
    return shownAs === 'device' ? this.publishedDevice(name, uid) : this.volume(uid, name).mount;
  }

  /** Path at which the volume is staged. */
  stagedAt({
    name,
    driver,
    handle,
    shownAs,
  }: Pick<CsiVolume, 'name' | 'driver' | 'handle' | 'shownAs'>): string {
    return shownAs === 'device' ? this.stagedDevice(name) : this.stagedVolume(driver, handle).mount;
  }

  /** Whether the name is that of a directory shared by all block volumes. */
  isShared(name: string): boolean {
    return name === stagingName || name === publishName;
  }

  stagedDevice(name: string): string {
    return posix.join(this.devices, stagingName, checked(name));
  }

  publishedDevices(name: string): string {
    return posix.join(this.devices, publishName, checked(name));
  }

  publishedDevice(name: string, uid: PodUid): string {
    return posix.join(this.publishedDevices(name), uid);
  }

  /** Paths of a block volume: its data file, and one bound file per pod. */
  device(name: string): { readonly directory: string; readonly data: string; readonly dev: string } {
    const directory = posix.join(this.devices, checked(name));
    return { directory, data: posix.join(directory, 'data', dataFile), dev: posix.join(directory, 'dev') };
  }

  /** Returns which of the handles belongs to the volume staged at the path. */
  handleAt({ directory }: CsiVolumePaths, handles: Iterable<string>): string | undefined {
    const hash = posix.basename(directory);
    for (const handle of handles) if (sha256(handle) === hash) return handle;
    return undefined;
  }

  stagedVolume(driver: string, handle: string): CsiVolumePaths {
    return volumePathsIn(posix.join(this.staged, checked(driver), sha256(handle)), 'globalmount');
  }
}

/** A directory that contains the mount point and the data file of a volume. */
export interface CsiVolumePaths {
  readonly directory: string;
  readonly mount: string;
  readonly data: string;
}

export function volumePathsIn(directory: string, mount: 'mount' | 'globalmount'): CsiVolumePaths {
  return { directory, mount: posix.join(directory, mount), data: posix.join(directory, dataFile) };
}

/** Returns the volume handle of an inline volume, derived from pod and volume name. */
export function inlineHandle(uid: PodUid, volume: string): string {
  return `csi-${sha256(`${uid}${volume}`)}`;
}

export function attachmentName(handle: string, driver: string, nodeName: string): string {
  return `csi-${sha256(`${handle}${driver}${nodeName}`)}`;
}

/** Plugin name of a driver's volumes in metrics. */
export function csiPlugin({ driver, origin }: Pick<CsiVolume, 'driver' | 'origin'>): VolumePlugin {
  return { name: `kubernetes.io/csi:${driver}`, origin };
}

/** Unique volume name in the node status. */
export function attachedName(driver: string, handle: string): string {
  return `kubernetes.io/csi/${driver}^${handle}`;
}

/**
 * Returns the handle in a volume name of the node status; undefined when it belongs to another
 * driver.
 */
export function handleIn(name: string, driver: string): string | undefined {
  const own = attachedName(driver, '');
  return name.startsWith(own) ? name.slice(own.length) : undefined;
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

function checked(name: string): string {
  if (name === '' || name.startsWith('.') || name.includes('/'))
    throw unusable(`${JSON.stringify(name)} is no name of a volume or a driver`);
  return name;
}
