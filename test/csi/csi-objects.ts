import { hostname } from 'node:os';

const image = 'localhost/kubeling/busybox:1';
export const nodeName = hostname().toLowerCase();
export const driverName = 'disks.test.kubeling';

export const json = (...items: readonly object[]) =>
  items.map((item) => `---\n${JSON.stringify(item)}\n`).join('');

export const driverObject = (spec: object) => ({
  apiVersion: 'storage.k8s.io/v1',
  kind: 'CSIDriver',
  metadata: { name: driverName },
  spec,
});

export const volume = (name: string) => ({
  apiVersion: 'v1',
  kind: 'PersistentVolume',
  metadata: { name },
  spec: {
    capacity: { storage: '1Gi' },
    accessModes: ['ReadWriteOnce'],
    storageClassName: name,
    csi: { driver: driverName, volumeHandle: name, volumeAttributes: { of: 'volume' } },
  },
});

export const claim = (name: string) => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name, namespace: 'default' },
  spec: {
    accessModes: ['ReadWriteOnce'],
    storageClassName: name,
    resources: { requests: { storage: '1Gi' } },
  },
});

export const pod = (name: string, source: object, spec: object = {}) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name },
  spec: {
    terminationGracePeriodSeconds: 1,
    containers: [
      {
        name: 'main',
        image,
        command: ['sh', '-c', 'cat /data/canary; sleep 1000'],
        volumeMounts: [{ name: 'data', mountPath: '/data' }],
      },
    ],
    volumes: [{ name: 'data', ...source }],
    ...spec,
  },
});

export const claimed = (name: string) => ({ persistentVolumeClaim: { claimName: name } });
export const inline = (more: object = {}) => ({
  csi: { driver: driverName, volumeAttributes: { size: 'small' }, ...more },
});
