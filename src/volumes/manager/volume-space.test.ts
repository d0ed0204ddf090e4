import assert from 'node:assert/strict';
import { test } from 'node:test';
import { podOf } from '../../../test/fakes/pod-sketch.ts';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { MetricRegistry } from '../../lib/index.ts';
import type { BlockDevices, CsiSpace, VolumeFiles, VolumeSpace } from '../index.ts';
import { VolumeMetrics, volumeSpace } from './volume-space.ts';

const { signal } = new AbortController();
const spaceOf = (capacityBytes: number): VolumeSpace => ({
  capacityBytes,
  availableBytes: 60,
  usedBytes: 30,
  inodes: 10,
  inodesFree: 4,
  inodesUsed: 6,
});

function createHarness(space: (directory: string) => Promise<CsiSpace>) {
  const clock = new VirtualClock();
  const registry = new MetricRegistry({ onError: (error) => assert.fail(String(error)) });
  const requests: string[] = [];
  const claims = [
    { namespace: 'ns', claim: 'a', directory: '/a' },
    { namespace: 'ns', claim: 'b', directory: '/b' },
  ];
  const volumes = {
    // Two pods mount the same claims; each claim is measured once.
    claimsOf: () => claims,
    pluginsOf: () => ['kubernetes.io/secret', 'kubernetes.io/empty-dir'],
    mountedPlugins: () => ['kubernetes.io/secret'],
  };
  new VolumeMetrics({
    clock,
    pods: () => [podOf({ uid: 'u1' }), podOf({ uid: 'u2' })],
    volumes,
    space: async (directory) => {
      requests.push(directory);
      return await space(directory);
    },
  }).register(registry);
  const lines = async (prefix: string) =>
    (await registry.expose(signal)).split('\n').filter((line) => line.startsWith(prefix));
  return { clock, lines, asked: requests };
}

test('reports the space of each claim under the metric names of the Go kubelet, measured at most once a minute', async () => {
  const { lines, asked, clock } = createHarness(async (directory) => spaceOf(directory === '/a' ? 100 : 200));
  const reported = await lines('kubelet_volume_stats_');
  assert.deepEqual(reported, [
    'kubelet_volume_stats_available_bytes{namespace="ns",persistentvolumeclaim="a"} 60',
    'kubelet_volume_stats_available_bytes{namespace="ns",persistentvolumeclaim="b"} 60',
    'kubelet_volume_stats_capacity_bytes{namespace="ns",persistentvolumeclaim="a"} 100',
    'kubelet_volume_stats_capacity_bytes{namespace="ns",persistentvolumeclaim="b"} 200',
    'kubelet_volume_stats_inodes{namespace="ns",persistentvolumeclaim="a"} 10',
    'kubelet_volume_stats_inodes{namespace="ns",persistentvolumeclaim="b"} 10',
    'kubelet_volume_stats_inodes_free{namespace="ns",persistentvolumeclaim="a"} 4',
    'kubelet_volume_stats_inodes_free{namespace="ns",persistentvolumeclaim="b"} 4',
    'kubelet_volume_stats_inodes_used{namespace="ns",persistentvolumeclaim="a"} 6',
    'kubelet_volume_stats_inodes_used{namespace="ns",persistentvolumeclaim="b"} 6',
    'kubelet_volume_stats_used_bytes{namespace="ns",persistentvolumeclaim="a"} 30',
    'kubelet_volume_stats_used_bytes{namespace="ns",persistentvolumeclaim="b"} 30',
  ]);
  await clock.advance(59_000);
  assert.deepEqual(await lines('kubelet_volume_stats_'), reported);
  assert.deepEqual(asked, ['/a', '/b']);
  await clock.advance(2_000);
  await lines('');
  assert.deepEqual(asked, ['/a', '/b', '/a', '/b']);
});

test('omits the metrics of a volume that does not respond, and skips it for five minutes', async () => {
  const { lines, asked, clock } = createHarness((directory) =>
    directory === '/a' ? new Promise(() => {}) : Promise.resolve(spaceOf(200)),
  );
  const capacity = 'kubelet_volume_stats_capacity_bytes';
  const response = lines(capacity);
  await clock.advance(5_000);
  const reported = [`${capacity}{namespace="ns",persistentvolumeclaim="b"} 200`];
  assert.deepEqual(await response, reported);
  await clock.advance(120_000);
  assert.deepEqual(await lines(capacity), reported);
  assert.deepEqual(asked, ['/a', '/b', '/b']);
});

test('reports the volume stats and health that a CSI driver returns', async () => {
  const { lines } = createHarness(async (directory) =>
    directory === '/a' ? { usedBytes: 5, health: 'abnormal' } : { capacityBytes: 9, health: 'normal' },
  );
  assert.deepEqual(await lines('kubelet_volume_stats_'), [
    'kubelet_volume_stats_capacity_bytes{namespace="ns",persistentvolumeclaim="b"} 9',
    'kubelet_volume_stats_health_status_abnormal{namespace="ns",persistentvolumeclaim="a"} 1',
    'kubelet_volume_stats_health_status_abnormal{namespace="ns",persistentvolumeclaim="b"} 0',
    'kubelet_volume_stats_used_bytes{namespace="ns",persistentvolumeclaim="a"} 5',
  ]);
});

test('counts desired and mounted volumes by plugin', async () => {
  const { lines } = createHarness(async () => spaceOf(1));
  assert.deepEqual(await lines('volume_manager_total_volumes'), [
    'volume_manager_total_volumes{plugin_name="kubernetes.io/secret",state="actual_state_of_world"} 1',
    'volume_manager_total_volumes{plugin_name="kubernetes.io/secret",state="desired_state_of_world"} 2',
    'volume_manager_total_volumes{plugin_name="kubernetes.io/empty-dir",state="desired_state_of_world"} 2',
  ]);
});

test('measures a claim with the CSI driver first, then as a block device, then as a file system', async () => {
  const sizes = new Map([['/pods/u/volumeDevices/kubernetes.io~local-volume/pv', 512]]);
  const space = volumeSpace(
    {
      volumeFiles: { spaceAt: async () => spaceOf(100) } as unknown as VolumeFiles,
      blockDevices: { sizeOf: async (path: string) => sizes.get(path) } as unknown as BlockDevices,
    },
    { spaceAt: (place) => (place.includes('~csi') ? Promise.resolve({ capacityBytes: 7 }) : undefined) },
  );
  const at = async (path: string) => await space?.(`/pods/u/${path}`, signal);
  assert.deepEqual(await at('volumeDevices/kubernetes.io~csi/pv'), { capacityBytes: 7 });
  assert.deepEqual(await at('volumeDevices/kubernetes.io~local-volume/pv'), { capacityBytes: 512 });
  assert.deepEqual(await at('volumeDevices/kubernetes.io~local-volume/gone'), {});
  assert.deepEqual(await at('volumes/kubernetes.io~nfs/pv'), spaceOf(100));
  assert.equal(volumeSpace({}, undefined), undefined);
});
