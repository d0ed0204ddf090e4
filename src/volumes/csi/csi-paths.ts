import { createHash } from 'node:crypto';
import { posix } from 'node:path';
import { mayBePodUid, type PodUid } from '../../pods/index.ts';
import type { VolumePlugin } from '../manager/volume-metrics.ts';
import { unusable } from '../projected/payload.ts';
import { type DirectoryChain, PodVolumePaths } from '../projected/payload-paths.ts';
import type { CsiVolume } from './csi-request.ts';

const csiKind = 'kubernetes.io~csi';
const dataFile = 'vol_data.json';
/** Beside the volumes, which cannot be called so as long as nobody calls a volume so. */
const [stagingName, publishName] = ['staging', 'publish'];

/** Where the volumes of CSI drivers are, as the Go kubelet has them, so that either goes on with what the other left. */
export class CsiPaths {
  readonly podsDir: string;
  /** Volumes that are made ready for the node as a whole, by driver. */
  readonly staged: string;
  /** Volumes that are given to pods as devices; it lies among the drivers. */
  readonly devices: string;

  constructor(rootDir: string, podsDir: string) {
    this.podsDir = podsDir;
    this.staged = posix.join(rootDir, 'plugins/kubernetes.io/csi');
    this.devices = posix.join(this.staged, 'volumeDevices');
  }

  /** The directory of all such volumes of a pod. */
  ofPod(uid: PodUid): string {
    return posix.join(new PodVolumePaths(this.podsDir, uid).volumes, csiKind);
  }

  /** All directories on the way there. */
  waysTo(uid: PodUid): DirectoryChain {
    const { pod, volumes } = new PodVolumePaths(this.podsDir, uid);
    return [pod, volumes, this.ofPod(uid)];
  }

  volume(uid: PodUid, name: string): CsiVolumePaths {
    return volumePathsIn(posix.join(this.ofPod(uid), checked(name)), 'mount');
  }

  /** Whether a volume of a pod may be mounted there. */
  isVolume(mount: string): boolean {
    const [uid = '', volumes, kind] = posix.relative(this.podsDir, mount).split('/');
    return volumes === 'volumes' && kind === csiKind && mayBePodUid(uid);
  }

  /** Whose device a pod is given at that link; undefined for any other path. */
  deviceAt(link: string): { readonly uid: PodUid; readonly name: string } | undefined {
    const [uid = '', devices, kind, name = '', ...more] = posix.relative(this.podsDir, link).split('/');
    const isDevice = devices === 'volumeDevices' && kind === csiKind && name !== '' && more.length === 0;
    return isDevice && mayBePodUid(uid) ? { uid, name } : undefined;
  }

  /** Where what a pod is shown of a volume is. */
  shown(uid: PodUid, { name, shownAs }: Pick<CsiVolume, 'name' | 'shownAs'>): string {
    return shownAs === 'device' ? this.publishedDevice(name, uid) : this.volume(uid, name).mount;
  }

  /** Where the volume is made ready for the node. */
  stagedAt({
    name,
    driver,
    handle,
    shownAs,
  }: Pick<CsiVolume, 'name' | 'driver' | 'handle' | 'shownAs'>): string {
    return shownAs === 'device' ? this.stagedDevice(name) : this.stagedVolume(driver, handle).mount;
  }

  /** Whether it is where devices of a driver are for all volumes, rather than one of them. */
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

  /** With what is known of the volume, and with a file for each pod that is shown the device. */
  device(name: string): { readonly directory: string; readonly data: string; readonly dev: string } {
    const directory = posix.join(this.devices, checked(name));
    return { directory, data: posix.join(directory, 'data', dataFile), dev: posix.join(directory, 'dev') };
  }

  /** Which of these handles it is that a volume is staged there for. */
  handleAt({ directory }: CsiVolumePaths, handles: Iterable<string>): string | undefined {
    const hash = posix.basename(directory);
    for (const handle of handles) if (sha256(handle) === hash) return handle;
    return undefined;
  }

  stagedVolume(driver: string, handle: string): CsiVolumePaths {
    return volumePathsIn(posix.join(this.staged, checked(driver), sha256(handle)), 'globalmount');
  }
}

/** A directory with a file that says what is mounted in there. */
export interface CsiVolumePaths {
  readonly directory: string;
  readonly mount: string;
  readonly data: string;
}

export function volumePathsIn(directory: string, mount: 'mount' | 'globalmount'): CsiVolumePaths {
  return { directory, mount: posix.join(directory, mount), data: posix.join(directory, dataFile) };
}

/** What a volume that a pod describes itself is called. */
export function inlineHandle(uid: PodUid, volume: string): string {
  return `csi-${sha256(`${uid}${volume}`)}`;
}

export function attachmentName(handle: string, driver: string, nodeName: string): string {
  return `csi-${sha256(`${handle}${driver}${nodeName}`)}`;
}

/** As metrics name what mounts the volumes of a driver. */
export function csiPlugin({ driver, origin }: Pick<CsiVolume, 'driver' | 'origin'>): VolumePlugin {
  return { name: `kubernetes.io/csi:${driver}`, origin };
}

/** As the status of a node names it. */
export function attachedName(driver: string, handle: string): string {
  return `kubernetes.io/csi/${driver}^${handle}`;
}

/** The handle in such a name, if it is one of the driver. */
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
