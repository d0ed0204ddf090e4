import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';

const image = 'localhost/kubeling/busybox:1';
const alive = 'alive\n';

/** Reads what is to be read and writes where that is allowed; `ok` is there once all of it went well. */
const script = [
  'set -e',
  'for file in /config/key /secret/key /projected/key /projected/token /host/canary /local/canary; do [ -s $file ]; done',
  'for place in /memory /part /deep; do echo here > $place/written; done',
  'touch /disk/ok',
  'trap "exit 0" TERM; while true; do sleep 0.1; done',
].join('\n');

/** A pod with a volume of each kind that can be had without a driver, and parts of some. */
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
            ...['disk', 'memory', 'config', 'secret', 'projected', 'host', 'local'].map((each) =>
              mount(each),
            ),
            mount('memory', '/part', { subPath: 'part' }),
            mount('local', '/deep', { subPath: `of/${name}` }),
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
        { name: 'host', hostPath: { path: hostPath, type: 'Directory' } },
        { name: 'local', persistentVolumeClaim: { claimName: 'disk' } },
      ],
    },
  };
}

/** What the pods refer to, by the path it is made at. */
export function referred(localPath: string): ReadonlyMap<string, object> {
  const values = [hostname().toLowerCase()];
  const terms = [{ matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In', values }] }];
  const shared = { accessModes: ['ReadWriteOnce'], storageClassName: 'disk' };
  const own = '/api/v1/namespaces/default';
  return new Map<string, object>([
    [
      `${own}/configmaps`,
      { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'settings' }, data: { key: 'value' } },
    ],
    [
      `${own}/secrets`,
      { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'keys' }, stringData: { key: 'hidden' } },
    ],
    [
      '/api/v1/persistentvolumes',
      {
        apiVersion: 'v1',
        kind: 'PersistentVolume',
        metadata: { name: 'disk' },
        spec: {
          ...shared,
          capacity: { storage: '1Gi' },
          local: { path: localPath },
          nodeAffinity: { required: { nodeSelectorTerms: terms } },
        },
      },
    ],
    [
      `${own}/persistentvolumeclaims`,
      {
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        metadata: { name: 'disk' },
        spec: { ...shared, resources: { requests: { storage: '1Gi' } } },
      },
    ],
  ]);
}

/** Files outside the node that its pods have, and that nobody may take away. */
export class Canaries {
  readonly #files: readonly string[];

  /** In each directory one at the top and one deep in it. */
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
