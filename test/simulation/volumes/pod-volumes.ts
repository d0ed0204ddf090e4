import { posix } from 'node:path';
import type { Volume } from '../../../src/kinds/index.ts';
import type { Pod } from '../../../src/pods/index.ts';
import { settings } from '../kubelet-life.ts';

export const drivers = { disks: 'disks.sim', plain: 'plain.sim', far: 'far.sim' } as const;
export const objectNames = { config: 'settings', secret: 'keys' } as const;
/** Of each pair of files that change together. */
export const fileNames = ['a', 'b'] as const;
/** The label that downward files tell. */
const label = 'edited';

export type VolumeKind = keyof typeof sources;

/** By the name the volume has in the pod; each with the directory of its plugin. */
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
  /** One that has to be attached before. */
  far: ['csi', (uid: string) => ({ persistentVolumeClaim: { claimName: `far-${uid}` } })],
} as const satisfies Readonly<Record<string, readonly [string, (uid: string) => Omit<Volume, 'name'>]>>;

/** Those in which files change together. */
export const filled: readonly VolumeKind[] = ['config', 'secret', 'labels', 'projected'];
const kinds = Object.keys(sources) as readonly VolumeKind[];

function labelFiles() {
  return fileNames.map((path) => ({ path, fieldRef: { fieldPath: `metadata.labels['${label}']` } }));
}

function projectedSources() {
  return [
    { configMap: { name: objectNames.config } },
    { serviceAccountToken: { path: 'token', expirationSeconds: 3_600 } },
  ];
}

/** By its UID, so that nothing is drawn for it: about half of all kinds. */
export function kindsOf(uid: string): readonly VolumeKind[] {
  const bits = Number.parseInt(uid.slice(0, 4), 16);
  return kinds.filter((_kind, index) => ((bits >> index) & 1) === 1);
}

/** The pod with its volumes, of which every container it begins with has all. */
export function withEveryVolume(pod: Pod): Pod {
  const { uid } = pod.metadata;
  const own = kindsOf(uid);
  const volumeMounts = own.map((name) => ({ name, mountPath: `/${name}` }));
  const dressed = <C extends object>(container: C) => ({ ...container, volumeMounts });
  const { initContainers, containers } = pod.spec;
  return {
    ...pod,
    metadata: { ...pod.metadata, labels: { [label]: '0', ...pod.metadata.labels } },
    spec: {
      ...pod.spec,
      serviceAccountName: 'default',
      containers: containers.map(dressed),
      ...(initContainers !== undefined && { initContainers: initContainers.map(dressed) }),
      volumes: own.map((name) => ({ name, ...sources[name][1](uid) })),
    },
  };
}

export function podDirOf(uid: string): string {
  return posix.join(settings.rootDir, 'pods', uid);
}

/** Where the pod has the volume. */
export function placeOf(uid: string, kind: VolumeKind): string {
  const plugin = sources[kind][0];
  const name = stagedIdOf(uid, kind) ?? kind;
  const at = posix.join(podDirOf(uid), 'volumes', `kubernetes.io~${plugin}`, name);
  return plugin === 'csi' ? posix.join(at, 'mount') : at;
}

/** What drivers call it; undefined for what no driver has to do with, or one that stages nothing. */
export function stagedIdOf(uid: string, kind: VolumeKind): string | undefined {
  if (kind === 'shared') return kind;
  if (kind === 'far') return `far-${uid}`;
  return kind === 'own' ? uid : undefined;
}
