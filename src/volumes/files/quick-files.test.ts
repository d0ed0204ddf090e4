import assert from 'node:assert/strict';
import { test } from 'node:test';
import { callsToChange, fileCallsFor, isQuickPath } from './quick-files.ts';

const pod = '/var/lib/kubelet/pods/8f0c';
const volumes = `${pod}/volumes`;

test('paths in directories that only this node changes are read without the thread pool', () => {
  const quick = [
    '/var/lib/kubelet/pods',
    pod,
    `${pod}/containers/main/0a1b2c3d`,
    volumes,
    `${volumes}/kubernetes.io~csi`,
    `${volumes}/kubernetes.io~nfs`,
    `${pod}/plugins/kubernetes.io~empty-dir/wrapped_cm/ready`,
    `${volumes}/kubernetes.io~configmap/cm/..data`,
    `${volumes}/kubernetes.io~secret/s/..2026_01_01_00_00_00.1/key`,
    `${volumes}/kubernetes.io~projected/token`,
    `${volumes}/kubernetes.io~empty-dir/scratch`,
    `${pod}/volumeDevices`,
    `${pod}/volumeDevices/kubernetes.io~csi`,
    '/var/lib/kubelet/plugins/kubernetes.io/csi/volumeDevices',
    '/var/lib/kubelet/plugins/kubernetes.io~local-volume/volumeDevices',
    '/var/lib/kubelet/plugins/kubernetes.io/local-volume/mounts',
  ];
  for (const path of quick) assert.equal(isQuickPath(path), true, path);
  const slow = [
    `${volumes}/kubernetes.io~csi/data/mount`,
    `${volumes}/kubernetes.io~nfs/data`,
    `${volumes}/kubernetes.io~local-volume/data`,
    `${volumes}/kubernetes.io~empty-dir/scratch/mounted-by-the-pod`,
    `${pod}/volume-subpaths/data/main/0`,
    '/var/lib/kubelet/plugins/kubernetes.io/csi/driver/1/globalmount',
    '/var/lib/kubelet/plugins/kubernetes.io/csi/volumeDevices/staging/data',
    '/var/lib/kubelet/plugins/kubernetes.io/local-volume/mounts/disk',
    `${pod}/volumeDevices/kubernetes.io~csi/data`,
    '/srv/data',
  ];
  for (const path of slow) assert.equal(isQuickPath(path), false, path);
});

test('writes files on disks with the thread pool and files in memory synchronously', () => {
  const later = fileCallsFor('/srv/data');
  for (const path of [
    `${volumes}/kubernetes.io~configmap/cm/..data`,
    `${volumes}/kubernetes.io~secret/s`,
    `${volumes}/kubernetes.io~empty-dir/scratch/file`,
    `${volumes}/kubernetes.io~csi/data/mount`,
  ])
    assert.equal(callsToChange(path), later, path);
  const atOnce = fileCallsFor(pod);
  for (const path of [
    `${volumes}/kubernetes.io~secret/s/..data`,
    `${volumes}/kubernetes.io~projected/token/..2026_01_01_00_00_00.1/token`,
  ])
    assert.equal(callsToChange(path), atOnce, path);
});
