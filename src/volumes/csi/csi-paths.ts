import { createHash } from 'node:crypto';
import { posix } from 'node:path';
import { mayBePodUid, type PodUid } from '../../pods/index.ts';
import type { VolumePlugin } from '../manager/volume-metrics.ts';
import { unusable } from '../projected/payload.ts';
import { type DirectoryChain, PodVolumePaths } from '../projected/payload-paths.ts';
import type { CsiVolume } from './csi-request.ts';

const csiKind = 'kubernetes.io~csi';
const dataFile = 'vol_data.json';
/** Directories beside the volumes; volumes with these names are rejected. */
const [stagingName, publishName] = ['staging', 'publish'];

/**
 * The paths of CSI volumes. They equal those of the Go kubelet, so that either kubelet can continue
 * with the volumes of the other.
 */
export class CsiPaths {
  readonly podsDir: string;
  /** The staging directories (global mounts), by driver. */
  readonly staged: string;
  /** The directory of block volumes, beside those of the drivers. */
  readonly devices: string;

  constructor(rootDir: string, podsDir: string) {
    this.podsDir = podsDir;
    this.staged = posix.join(rootDir, 'plugins/kubernetes.io/csi');
    this.devices = posix.join(this.staged, 'volumeDevices');
  }

  /** The directory of all CSI volumes of a pod. */
  ofPod(uid: PodUid): string {
    return posix.join(new PodVolumePaths(this.podsDir, uid).volumes, csiKind);
  }

  /** All directories above the volumes of a pod. */
  chainTo(uid: PodUid): DirectoryChain {
    const { pod, volumes } = new PodVolumePaths(this.podsDir, uid);
    return [pod, volumes, this.ofPod(uid)];
  }

  volume(uid: PodUid, name: string): CsiVolumePaths {
    return volumePathsIn(posix.join(this.ofPod(uid), checked(name)), 'mount');
  }

  /** Whether the path is a possible mount path of a CSI volume of a pod. */
  isVolume(mount: string): boolean {
    const [uid = '', volumes, kind] = posix.relative(this.podsDir, mount).split('/');
    return volumes === 'volumes' && kind === csiKind && mayBePodUid(uid);
  }

  /** Returns the pod and volume of a block device link; undefined for any other path. */
  deviceAt(link: string): { readonly uid: PodUid; readonly name: string } | undefined {
    const [uid = '', devices, kind, name = '', ...more] = posix.relative(this.podsDir, link).split('/');
    const isDevice = devices === 'volumeDevices' && kind === csiKind && name !== '' && more.length === 0;
    return isDevice && mayBePodUid(uid) ? { uid, name } : undefined;
  }

  /** The path at which the volume is published for the pod. */
  shown(uid: PodUid, { name, shownAs }: Pick<CsiVolume, 'name' | 'shownAs'>): string {
    return shownAs === 'device' ? this.publishedDevice(name, uid) : this.volume(uid, name).mount;
  }

  /** The staging path of the volume. */
  stagedAt({
    name,
    driver,
    handle,
    shownAs,
  }: Pick<CsiVolume, 'name' | 'driver' | 'handle' | 'shownAs'>): string {
    return shownAs === 'device' ? this.stagedDevice(name) : this.stagedVolume(driver, handle).mount;
  }

  /** Whether the name is one of the directories shared by all block volumes. */
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

  /** The directories of a block volume: its data file, and one bound file per pod. */
  device(name: string): { readonly directory: string; readonly data: string; readonly dev: string } {
    const directory = posix.join(this.devices, checked(name));
    return { directory, data: posix.join(directory, 'data', dataFile), dev: posix.join(directory, 'dev') };
  }

  /** Returns the handle among these whose volume is staged at the path. */
  handleAt({ directory }: CsiVolumePaths, handles: Iterable<string>): string | undefined {
    const hash = posix.basename(directory);
    for (const handle of handles) if (sha256(handle) === hash) return handle;
    return undefined;
  }

  stagedVolume(driver: string, handle: string): CsiVolumePaths {
    return volumePathsIn(posix.join(this.staged, checked(driver), sha256(handle)), 'globalmount');
  }
}

/** A directory with the mount point and the data file of a volume. */
export interface CsiVolumePaths {
  readonly directory: string;
  readonly mount: string;
  readonly data: string;
}

export function volumePathsIn(directory: string, mount: 'mount' | 'globalmount'): CsiVolumePaths {
  return { directory, mount: posix.join(directory, mount), data: posix.join(directory, dataFile) };
}

/** The volume handle of an inline volume. */
export function inlineHandle(uid: PodUid, volume: string): string {
  return `csi-${sha256(`${uid}${volume}`)}`;
}

export function attachmentName(handle: string, driver: string, nodeName: string): string {
  return `csi-${sha256(`${handle}${driver}${nodeName}`)}`;
}

/** The plugin name in metrics. */
export function csiPlugin({ driver, origin }: Pick<CsiVolume, 'driver' | 'origin'>): VolumePlugin {
  return { name: `kubernetes.io/csi:${driver}`, origin };
}

/** The unique volume name in the node status. */
export function attachedName(driver: string, handle: string): string {
  return `kubernetes.io/csi/${driver}^${handle}`;
}

/** Returns the handle in such a name if it belongs to the driver. */
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
