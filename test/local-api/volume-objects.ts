import { hostname } from 'node:os';

export const nodeName = hostname().toLowerCase();
const image = 'localhost/kubeling/busybox:1';

/** Serializes objects as a stream of documents, which kubectl accepts as one file. */
export const json = (...items: readonly object[]) =>
  items.map((item) => `---\n${JSON.stringify(item)}\n`).join('');

/**
 * A volume with a separate storage class, so that only the claim of the same name is bound to it.
 */
export const persistentVolume = (name: string, spec: object, metadata: object = {}) => ({
  apiVersion: 'v1',
  kind: 'PersistentVolume',
  metadata: { name, ...metadata },
  spec: { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], storageClassName: name, ...spec },
});

export const claim = (name: string, spec: object = {}) => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name, namespace: 'default' },
  spec: {
    accessModes: ['ReadWriteOnce'],
    storageClassName: name,
    resources: { requests: { storage: '1Gi' } },
    ...spec,
  },
});

/** Node affinity of a local volume for this machine. */
export const onThisNode = {
  required: {
    nodeSelectorTerms: [
      { matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In', values: [nodeName] }] },
    ],
  },
};

export const claimed = (name: string, readOnly = false) => ({
  persistentVolumeClaim: { claimName: name, ...(readOnly ? { readOnly } : {}) },
});

/** How a container uses the only volume of its pod. */
export const mounted = { volumeMounts: [{ name: 'data', mountPath: '/data' }] };
export const asDevice = { volumeDevices: [{ name: 'data', devicePath: '/dev/data' }] };

/** A pod that mounts a volume, runs the script, and then keeps running. */
export const podWith = (name: string, script: string, container: object, spec: object) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name },
  spec: {
    terminationGracePeriodSeconds: 1,
    containers: [{ name: 'main', image, command: ['sh', '-c', `${script}; sleep 1000`], ...container }],
    ...spec,
  },
});
