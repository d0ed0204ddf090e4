import { posix } from 'node:path';
import type { Volume } from '../../../src/kinds/index.ts';
import type { Pod } from '../../../src/pods/index.ts';
import { settings } from '../kubelet-life.ts';

export const drivers = { disks: 'disks.sim', plain: 'plain.sim', far: 'far.sim' } as const;
export const objectNames = { config: 'settings', secret: 'keys', extra: 'extra' } as const;
/** The files of each pair that change together. */
export const fileNames = ['a', 'b'] as const;
/** The label that downward API files contain. */
const label = 'edited';

export type VolumeKind = keyof typeof sources;

/** By the volume's name in the pod; each with the directory of its plugin. */
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
  /** A volume that must be attached before. */
  far: ['csi', (uid: string) => ({ persistentVolumeClaim: { claimName: `far-${uid}` } })],
  /** A disk with a file system that contains data. */
  disk: ['local-volume', () => ({ persistentVolumeClaim: { claimName: 'disk' } })],
  /** An empty disk. */
  blank: ['local-volume', (uid: string) => ({ persistentVolumeClaim: { claimName: `blank-${uid}` } })],
  /** A volume of a server. */
  export: ['nfs', () => ({ nfs: { server: 'server', path: '/export' } })],
  claimed: ['nfs', () => ({ persistentVolumeClaim: { claimName: 'claimed' } })],
  /** A disk as a block device. */
  device: ['local-volume', () => ({ persistentVolumeClaim: { claimName: 'device' } })],
  /** A block device of a driver, which must be attached before. */
  raw: ['csi', (uid: string) => ({ persistentVolumeClaim: { claimName: `raw-${uid}` } })],
  /** From an object that is created and deleted. */
  extra: ['configmap', () => ({ configMap: { name: objectNames.extra, optional: true } })],
  /** Volumes that only ephemeral containers mount. */
  read: ['configmap', () => ({ configMap: { name: objectNames.config } })],
  noted: ['empty-dir', () => ({ emptyDir: { medium: 'Memory' } })],
  lent: ['csi', () => ({ csi: { driver: drivers.plain } })],
} as const satisfies Readonly<Record<string, readonly [string, (uid: string) => Omit<Volume, 'name'>]>>;

/** Volumes in which files change together. */
export const filled: readonly VolumeKind[] = ['config', 'secret', 'labels', 'projected', 'extra', 'read'];
/** Volumes that only ephemeral containers mount, which are added while the pod runs. */
export const visitorKinds: readonly VolumeKind[] = ['read', 'noted', 'lent'];
/** Volumes that containers use as block devices. */
export const devices: readonly VolumeKind[] = ['device', 'raw'];
/** Volumes that exist once per pod, named by its UID. */
const ownKinds = { own: '', far: 'far-', blank: 'blank-', raw: 'raw-' } as const;
/** Volumes that are attached to the node. */
export const attachedKinds = ['far', 'raw'] as const;
/** As many bits as the part of the UID that is used. */
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
 * The volumes of the pod's initial containers. Chosen by UID so that no random number is drawn:
 * about half of all.
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
 * The pod with its volumes. Every initial container mounts all but those for ephemeral containers,
 * which mount all.
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

/** The volume's directory in the pod. */
export function placeOf(uid: string, kind: VolumeKind): string {
  const plugin = sources[kind][0];
  const isDevice = devices.includes(kind);
  const directory = isDevice ? 'volumeDevices' : 'volumes';
  const at = posix.join(podDirOf(uid), directory, `kubernetes.io~${plugin}`, volumeName(uid, kind));
  return plugin === 'csi' && !isDevice ? posix.join(at, 'mount') : at;
}

/** Where its device is mapped and held open. */
export function shownAt(uid: string, kind: VolumeKind): string {
  const name = volumeName(uid, kind);
  const plugins = posix.join(settings.rootDir, 'plugins');
  return kind === 'raw'
    ? posix.join(plugins, 'kubernetes.io/csi/volumeDevices', name, 'dev', uid)
    : posix.join(plugins, 'kubernetes.io~local-volume/volumeDevices', name, uid);
}

/** The name of its PersistentVolume. */
export function volumeName(uid: string, kind: VolumeKind): string {
  return Object.hasOwn(ownKinds, kind) ? `${ownKinds[kind as keyof typeof ownKinds]}${uid}` : kind;
}

/**
 * The volume's driver handle; undefined for a volume without driver, or of a driver that does not
 * stage.
 */
export function stagedIdOf(uid: string, kind: VolumeKind): string | undefined {
  return ['shared', 'own', 'far', 'raw'].includes(kind) ? volumeName(uid, kind) : undefined;
}
