import { claim, claimed, mounted, nodeName, persistentVolume, podWith } from '../local-api/volume-objects.ts';

export { claim, claimed, nodeName };
export const driverName = 'disks.test.kubeling';

export const driverObject = (spec: object) => ({
  apiVersion: 'storage.k8s.io/v1',
  kind: 'CSIDriver',
  metadata: { name: driverName },
  spec,
});

export const volume = (name: string) =>
  persistentVolume(name, {
    csi: { driver: driverName, volumeHandle: name, volumeAttributes: { of: 'volume' } },
  });

export const pod = (name: string, source: object, spec: object = {}) =>
  podWith(name, 'cat /data/canary', mounted, { volumes: [{ name: 'data', ...source }], ...spec });

export const inline = (more: object = {}) => ({
  csi: { driver: driverName, volumeAttributes: { size: 'small' }, ...more },
});
