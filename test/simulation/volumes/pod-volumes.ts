import { posix } from 'node:path';
import type { Volume } from '../../../src/kinds/index.ts';
import type { Pod } from '../../../src/pods/index.ts';
import { settings } from '../kubelet-life.ts';

export const drivers = { disks: 'disks.sim', plain: 'plain.sim', far: 'far.sim' } as const;
export const objectNames = { config: 'settings', secret: 'keys', extra: 'extra' } as const;
/** The names of two files in each volume that must always have the same version. */
export const fileNames = ['a', 'b'] as const;
/** The pod label whose value the downward API files contain. */
const label = 'edited';

export type VolumeKind = keyof typeof sources;

/**
 * The volume sources by the name of the volume in the pod, each with the directory name of its
 * volume plugin.
 */
const sources = {
  config: ['configmap', () => ({ configMap: { name: objectNames.config } })],
  secret: ['secret', () => ({ secret: { secretName: objectNames.secret } })],
  labels: ['downward-api', () => ({ downwardAPI: { items: labelFiles() } })],
  projected: ['projected', () => ({ projected: { sources: projectedSources() } })],
  scratch: ['empty-dir', () => ({ emptyDir: {} })],
  memory: ['empty-dir', () => ({ emptyDir: { medium: 'Memory' } })],
  local: ['local-volume', () => ({ persistentVolumeClaim: { claimName: 'local' } })],
  shared: ['csi', () => ({ persistentVolumeClaim: { claimName: 'shared' } })],
  own: ['csi', (uid: string) => ({ persistentVolumeClaim: { claimName: uid } })],
  inline: ['csi', () => ({ csi: { driver: drivers.plain } })],
  /** A CSI volume that must be attached. */
  far: ['csi', (uid: string) => ({ persistentVolumeClaim: { claimName: `far-${uid}` } })],
  /** A local disk with a file system that contains data. */
  disk: ['local-volume', () => ({ persistentVolumeClaim: { claimName: 'disk' } })],
  /** A local disk without a file system. */
  blank: ['local-volume', (uid: string) => ({ persistentVolumeClaim: { claimName: `blank-${uid}` } })],
  /** An NFS export. */
  export: ['nfs', () => ({ nfs: { server: 'server', path: '/export' } })],
  claimed: ['nfs', () => ({ persistentVolumeClaim: { claimName: 'claimed' } })],
  /** A local disk used as a raw block device. */
  device: ['local-volume', () => ({ persistentVolumeClaim: { claimName: 'device' } })],
  /** A raw block device of a CSI driver, which must be attached. */
  raw: ['csi', (uid: string) => ({ persistentVolumeClaim: { claimName: `raw-${uid}` } })],
  /** An optional ConfigMap that is created and deleted. */
  extra: ['configmap', () => ({ configMap: { name: objectNames.extra, optional: true } })],
  /** Volumes that only ephemeral containers mount. */
  read: ['configmap', () => ({ configMap: { name: objectNames.config } })],
  noted: ['empty-dir', () => ({ emptyDir: { medium: 'Memory' } })],
  lent: ['csi', () => ({ csi: { driver: drivers.plain } })],
} as const satisfies Readonly<Record<string, readonly [string, (uid: string) => Omit<Volume, 'name'>]>>;

/** Volumes with the two files that must always have the same version. */
export const filled: readonly VolumeKind[] = ['config', 'secret', 'labels', 'projected', 'extra', 'read'];
/** Volumes that only ephemeral containers mount; these containers are added while the pod runs. */
export const visitorKinds: readonly VolumeKind[] = ['read', 'noted', 'lent'];
/** Volumes that containers use as raw block devices. */
export const devices: readonly VolumeKind[] = ['device', 'raw'];
/** Name prefixes of volumes that exist once per pod and are named by its UID. */
const ownKinds = { own: '', far: 'far-', blank: 'blank-', raw: 'raw-' } as const;
/** Volumes that must be attached to the node. */
export const attachedKinds = ['far', 'raw'] as const;
/** The number of volumes selected by one group of four hexadecimal digits of the UID. */
const partBits = 16;
const kinds = (Object.keys(sources) as readonly VolumeKind[]).filter((kind) => !visitorKinds.includes(kind));

function labelFiles() {
  return fileNames.map((path) => ({ path, fieldRef: { fieldPath: `metadata.labels['${label}']` } }));
}

function projectedSources() {
  return [
    { configMap: { name: objectNames.config } },
    { serviceAccountToken: { path: 'token', expirationSeconds: 3_600 } },
  ];
}

/**
 * The volumes of the pod's regular and init containers: about half of all, selected by UID so that
 * no random number is drawn.
 */
export function kindsOf(uid: string): readonly VolumeKind[] {
  const isSet = (bit: number) => {
    const digits = partBits / 4;
    const from = Math.floor(bit / partBits) * digits;
    const bits = Number.parseInt(uid.slice(from, from + digits), 16);
    return ((bits >> (bit % partBits)) & 1) === 1;
  };
  return kinds.filter((_kind, index) => isSet(index));
}

/**
 * Adds the volumes to the pod. Ephemeral containers mount all volumes, other containers all except
 * those for ephemeral containers.
 */
export function withEveryVolume(pod: Pod): Pod {
  const { uid } = pod.metadata;
  const own = kindsOf(uid);
  const isDevice = (name: VolumeKind) => devices.includes(name);
  const mountOf = (name: VolumeKind) => ({ name, mountPath: `/${name}` });
  const volumeMounts = own.filter((name) => !isDevice(name)).map(mountOf);
  const volumeDevices = own.filter(isDevice).map((name) => ({ name, devicePath: `/dev/${name}` }));
  const dressed = <C extends object>(container: C) => ({ ...container, volumeMounts, volumeDevices });
  const visiting = { volumeMounts: [...volumeMounts, ...visitorKinds.map(mountOf)], volumeDevices };
  const { initContainers, containers, ephemeralContainers } = pod.spec;
  return {
    ...pod,
    metadata: { ...pod.metadata, labels: { [label]: '0', ...pod.metadata.labels } },
    spec: {
      ...pod.spec,
      serviceAccountName: 'default',
      containers: containers.map(dressed),
      ...(initContainers !== undefined && { initContainers: initContainers.map(dressed) }),
      ...(ephemeralContainers !== undefined && {
        ephemeralContainers: ephemeralContainers.map((container) => ({ ...container, ...visiting })),
      }),
      volumes: [...own, ...visitorKinds].map((name) => ({ name, ...sources[name][1](uid) })),
    },
  };
}

export function podDirOf(uid: string): string {
  return posix.join(settings.rootDir, 'pods', uid);
}

/** The directory of the volume in the pod directory, where containers get it from. */
export function placeOf(uid: string, kind: VolumeKind): string {
  const plugin = sources[kind][0];
  const isDevice = devices.includes(kind);
  const directory = isDevice ? 'volumeDevices' : 'volumes';
  const at = posix.join(podDirOf(uid), directory, `kubernetes.io~${plugin}`, volumeName(uid, kind));
  return plugin === 'csi' && !isDevice ? posix.join(at, 'mount') : at;
}

/** The path at which a block device is mapped for the pod and held open. */
export function shownAt(uid: string, kind: VolumeKind): string {
  const name = volumeName(uid, kind);
  const plugins = posix.join(settings.rootDir, 'plugins');
  return kind === 'raw'
    ? posix.join(plugins, 'kubernetes.io/csi/volumeDevices', name, 'dev', uid)
    : posix.join(plugins, 'kubernetes.io~local-volume/volumeDevices', name, uid);
}

/** The name of the volume's PersistentVolume. */
export function volumeName(uid: string, kind: VolumeKind): string {
  return Object.hasOwn(ownKinds, kind) ? `${ownKinds[kind as keyof typeof ownKinds]}${uid}` : kind;
}

/**
 * The volume handle in its CSI driver; undefined for a volume without a driver, or of a driver
 * without staging.
 */
export function stagedIdOf(uid: string, kind: VolumeKind): string | undefined {
  return ['shared', 'own', 'far', 'raw'].includes(kind) ? volumeName(uid, kind) : undefined;
}
