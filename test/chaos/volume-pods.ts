import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';

const image = 'localhost/kubeling/busybox:1';
const alive = 'alive\n';

/**
 * A script that reads all volumes and writes to the writable ones; it creates `ok` once everything
 * succeeded.
 */
const script = [
  'set -e',
  'for file in /config/key /secret/key /projected/key /projected/token /downward/name; do [ -s $file ]; done',
  'for place in /host /local /claimed /driven; do [ -s $place/canary ]; done',
  'for place in /memory /part /deep /deeper /own; do echo here > $place/written; done',
  'touch /disk/ok',
  'trap "exit 0" TERM; while true; do sleep 0.1; done',
].join('\n');

/** The name of the pods' CSI driver. */
export const driverName = 'disks.chaos.kubeling';
/** The CSI volume that all pods share. */
export const drivenVolume = 'driven';

/** Builds a pod with a volume of each kind that works on any machine, and subpaths of some. */
export function volumePod(name: string, hostPath: string): object {
  const mount = (volume: string, at = `/${volume}`, more: object = {}) => ({
    name: volume,
    mountPath: at,
    ...more,
  });
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: {
      terminationGracePeriodSeconds: 1,
      containers: [
        {
          name: 'main',
          image,
          command: ['sh', '-c', script],
          volumeMounts: [
            ...['disk', 'memory', 'config', 'secret', 'downward', 'projected', 'host'].map((each) =>
              mount(each),
            ),
            ...['local', 'claimed', 'driven', 'own'].map((each) => mount(each)),
            mount('memory', '/part', { subPath: 'part' }),
            mount('local', '/deep', { subPath: `of/${name}` }),
            mount('driven', '/deeper', { subPath: `of/${name}` }),
          ],
        },
      ],
      volumes: [
        { name: 'disk', emptyDir: {} },
        { name: 'memory', emptyDir: { medium: 'Memory' } },
        { name: 'config', configMap: { name: 'settings' } },
        { name: 'secret', secret: { secretName: 'keys' } },
        {
          name: 'projected',
          projected: {
            sources: [{ serviceAccountToken: { path: 'token' } }, { configMap: { name: 'settings' } }],
          },
        },
        {
          name: 'downward',
          downwardAPI: { items: [{ path: 'name', fieldRef: { fieldPath: 'metadata.name' } }] },
        },
        { name: 'host', hostPath: { path: hostPath, type: 'Directory' } },
        ...['local', 'claimed', 'driven'].map((each) => ({
          name: each,
          persistentVolumeClaim: { claimName: each },
        })),
        { name: 'own', csi: { driver: driverName } },
      ],
    },
  };
}

/** Returns the objects that the pods refer to, each with its API path. */
export function referred(places: {
  readonly local: string;
  readonly claimed: string;
}): readonly (readonly [path: string, object: object])[] {
  const values = [hostname().toLowerCase()];
  const terms = [{ matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In', values }] }];
  const own = '/api/v1/namespaces/default';
  const config = { kind: 'ConfigMap', metadata: { name: 'settings' }, data: { key: 'value' } };
  const secret = { kind: 'Secret', metadata: { name: 'keys' }, stringData: { key: 'hidden' } };
  const driver = {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'CSIDriver',
    metadata: { name: driverName },
    spec: { attachRequired: false, volumeLifecycleModes: ['Persistent', 'Ephemeral'] },
  };
  return [
    [`${own}/configmaps`, { apiVersion: 'v1', ...config }],
    [`${own}/secrets`, { apiVersion: 'v1', ...secret }],
    ['/apis/storage.k8s.io/v1/csidrivers', driver],
    ...claimOf('local', {
      local: { path: places.local },
      nodeAffinity: { required: { nodeSelectorTerms: terms } },
    }),
    ...claimOf('claimed', { hostPath: { path: places.claimed, type: 'Directory' } }),
    ...claimOf('driven', { csi: { driver: driverName, volumeHandle: drivenVolume } }),
  ];
}

/** Returns a PersistentVolume, and the claim bound to it. */
function claimOf(name: string, source: object): readonly (readonly [path: string, object: object])[] {
  const shared = { accessModes: ['ReadWriteOnce'], storageClassName: name };
  const volume = { ...shared, capacity: { storage: '1Gi' }, ...source };
  const claim = { ...shared, resources: { requests: { storage: '1Gi' } } };
  const object = (kind: string, spec: object) => ({ apiVersion: 'v1', kind, metadata: { name }, spec });
  return [
    ['/api/v1/persistentvolumes', object('PersistentVolume', volume)],
    ['/api/v1/namespaces/default/persistentvolumeclaims', object('PersistentVolumeClaim', claim)],
  ];
}

/** Files outside of the node that its pods mount; kubeling must not delete them. */
export class Canaries {
  readonly #files: readonly string[];

  /** Creates one file at the top of each directory and one in a subdirectory. */
  static async put(directories: readonly string[]): Promise<Canaries> {
    for (const directory of directories) await mkdir(join(directory, 'very/deep'), { recursive: true });
    const files = directories.flatMap((each) => [join(each, 'canary'), join(each, 'very/deep/canary')]);
    for (const file of files) await writeFile(file, alive);
    return new Canaries(files);
  }

  private constructor(files: readonly string[]) {
    this.#files = files;
  }

  async dead(): Promise<readonly string[]> {
    const texts = await Promise.all(this.#files.map((file) => readFile(file, 'utf8').catch(String)));
    return this.#files.filter((_file, index) => texts[index] !== alive);
  }
}
