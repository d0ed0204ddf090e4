import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { DriverProcess } from '../csi/driver-process.ts';
import { LocalCluster } from './local-cluster.ts';
import { withoutKubectl } from './tour-commands.ts';
import {
  asDevice,
  claimed,
  claim as claimOf,
  nodeName,
  persistentVolume,
  podWith,
} from './volume-objects.ts';

const driverName = 'devices.test.kubeling';
const block = { volumeMode: 'Block' };
const mebi = 2 ** 20;
const volume = (name: string) =>
  persistentVolume(name, { ...block, csi: { driver: driverName, volumeHandle: `handle-${name}` } });
const claim = (name: string) => claimOf(name, block);
const pod = (name: string, of: string, script: string) =>
  podWith(name, script, asDevice, { volumes: [{ name: 'data', ...claimed(of) }] });

/**
 * The tests use a CSI driver in a separate process, the real kubectl, the real containerd and real
 * kernel block devices.
 */
describe('block volumes of a CSI driver on kubeling up', { timeout: 900_000, skip: withoutKubectl() }, () => {
  let cluster: LocalCluster;
  let driver: DriverProcess;
  let folder: string;
  let rootDir: string;

  before(async () => {
    folder = await realpath(await mkdtemp(join(tmpdir(), 'klg-csi-')));
    cluster = await LocalCluster.open();
    rootDir = join(cluster.node.dataDir, 'kubelet');
    driver = new DriverProcess(driverName, join(folder, 'driver'), join(rootDir, 'plugins_registry'));
    await driver.start();
    const spec = { attachRequired: false };
    await cluster.apply({
      apiVersion: 'storage.k8s.io/v1',
      kind: 'CSIDriver',
      metadata: { name: driverName },
      spec,
    });
  });

  after(async () => {
    await driver?.kill();
    const left = await cluster?.leave();
    await rm(folder, { recursive: true, force: true });
    assert.deepEqual(left, []);
  });

  /** Writes the objects that the cluster's resizer writes after it has expanded the volume. */
  const grow = async (to: string, from: string) => {
    const capacity = { capacity: { storage: to } };
    await cluster.kubectl('patch', 'pv', 'grown', '-p', JSON.stringify({ spec: capacity }));
    const status = {
      capacity: { storage: from },
      allocatedResources: { storage: to },
      allocatedResourceStatuses: { storage: 'NodeResizePending' },
    };
    const patch = ['--subresource=status', '--type=merge', '-p', JSON.stringify({ status })];
    await cluster.kubectl('patch', 'pvc', 'grown', ...patch);
  };
  const base = () => join(rootDir, 'plugins/kubernetes.io/csi/volumeDevices');
  const isLeft = (name: string) =>
    readFileSync('/proc/self/mountinfo', 'utf8').includes(` ${join(base(), name)}/`) ||
    existsSync(join(base(), name)) ||
    readdirSync('/sys/block').some((loop) => {
      const file = join('/sys/block', loop, 'loop/backing_file');
      // The full path is compared, because other tests or a previous run may have devices with the
      // same name.
      return (
        existsSync(file) && readFileSync(file, 'utf8').startsWith(`${driver.contentOf(`handle-${name}`)}.img`)
      );
    });
  const gone = (name: string) => cluster.node.until('nothing to be left', async () => !isLeft(name));

  it('a block volume is staged once, published to each pod, and keeps its content', async () => {
    await cluster.apply(
      volume('both'),
      claim('both'),
      pod('first', 'both', 'echo -n first > /dev/data && sync; echo ok'),
    );
    await cluster.logContains('first', 'ok');
    await cluster.apply(pod('second', 'both', 'dd if=/dev/data bs=5 count=1 2>/dev/null; echo'));
    await cluster.logContains('second', 'first');
    const [first, second] = [await cluster.uidOf('first'), await cluster.uidOf('second')];
    assert.equal(driver.calls('NodeStageVolume', 'handle-both').length, 1);
    assert.deepEqual(
      driver.calls('NodePublishVolume', 'handle-both').map((line) => line.split(' ')[2]),
      [join(base(), 'publish/both', first), join(base(), 'publish/both', second)],
    );
    const data = JSON.parse(readFileSync(join(base(), 'both/data/vol_data.json'), 'utf8'));
    assert.deepEqual(
      [data.specVolID, data.volumeHandle, data.driverName],
      ['both', 'handle-both', driverName],
    );
    assert.deepEqual(readdirSync(join(base(), 'both/dev')).toSorted(), [first, second].toSorted());
    await cluster.kubectl('delete', 'pod', 'first');
    assert.equal(driver.calls('NodeUnstageVolume').length, 0);
    await cluster.kubectl('delete', 'pod', 'second');
    await gone('both');
    assert.equal(driver.calls('NodeUnstageVolume', 'handle-both').length, 1);
    assert.equal(
      readFileSync(`${driver.contentOf('handle-both')}.img`)
        .subarray(0, 5)
        .toString(),
      'first',
    );
  });

  it('a rejection by the driver is reported, and the block volume is published when the driver succeeds', async () => {
    driver.trouble({ NodePublishVolume: 'out of paper' });
    await cluster.apply(volume('late'), claim('late'), pod('late', 'late', 'echo here'));
    await cluster.until('the event', ['get', 'events'], (out) =>
      out.includes(
        'MapVolume.MapPodDevice failed for volume "late" : rpc error: code = Internal desc = out of paper',
      ),
    );
    driver.trouble({});
    await cluster.ready('late');
    await cluster.kubectl('delete', 'pod', 'late');
    await gone('late');
  });

  it('block volumes are adopted by a node restarted after a kill, and wait for an absent driver', async () => {
    await cluster.apply(volume('killed'), claim('killed'), pod('killed', 'killed', 'echo here'));
    await cluster.ready('killed');
    await cluster.node.end('SIGKILL');
    await cluster.node.start();
    await cluster.until('it to run', ['get', 'pod', 'killed'], (out) => /Running\s+0/.test(out));
    await driver.leave();
    await cluster.kubectl('delete', 'pod', 'killed', '--wait=false');
    await cluster.until('the event', ['get', 'events'], (out) =>
      /the volume handle-killed of the CSI driver devices\.test\.kubeling cannot be unpublished/.test(out),
    );
    await cluster.node.end('SIGKILL');
    await cluster.node.start();
    assert.equal(isLeft('killed'), true);
    await driver.start();
    await gone('killed');
  });

  it('a container restarted by a new kubeling process gets its block volume although the driver is absent', async () => {
    const ends = 'until [ "$(dd if=/dev/data bs=3 count=1 2>/dev/null)" = end ]; do sleep 0.2; done; exit 1';
    await cluster.apply(volume('kept'), claim('kept'), pod('kept', 'kept', `echo here; ${ends}`));
    await cluster.ready('kept');
    await cluster.node.end('SIGKILL');
    await driver.leave();
    await cluster.node.start();
    await cluster.until('it to run', ['get', 'pod', 'kept'], (out) => /Running\s+0/.test(out));
    await cluster.kubectl('exec', 'kept', '--', 'sh', '-c', 'echo -n end > /dev/data && sync');
    const count = ['get', 'pod', 'kept', '-o', 'jsonpath={.status.containerStatuses[0].restartCount}'];
    await cluster.until('its next container', count, (out) => Number(out) > 0).finally(() => driver.start());
    await cluster.kubectl('delete', 'pod', 'kept');
    await gone('kept');
  });

  it('a block volume grows before a pod uses it and while the pod runs, and reports its size', async () => {
    const sizes = 'while true; do dd if=/dev/data bs=1M 2>/dev/null | wc -c; sleep 1; done';
    await cluster.apply(volume('grown'), claim('grown'));
    await cluster.until('the claim', ['get', 'pvc', 'grown'], (out) => out.includes('Bound'));
    await grow('32Mi', '1Mi');
    await cluster.apply(pod('grown', 'grown', sizes));
    await cluster.logContains('grown', `${32 * mebi}`);
    await cluster.until('the event', ['get', 'events'], (out) =>
      out.includes('MountVolume.NodeExpandVolume succeeded for volume "grown"'),
    );
    await grow('48Mi', '32Mi');
    await cluster.kubectl('annotate', 'pod', 'grown', 'look=now');
    await cluster.logContains('grown', `${48 * mebi}`);
    const capacity = ['get', 'pvc', 'grown', '-o', 'jsonpath={.status.capacity.storage}'];
    await cluster.until('the claim to report the size', capacity, (out) => out === '48Mi');
    const metrics = ['get', '--raw', `/api/v1/nodes/${nodeName}/proxy/metrics`];
    const size = /^kubelet_volume_stats_capacity_bytes\{.*persistentvolumeclaim="grown"\} (.+)$/m;
    await cluster.until('the metric', metrics, (out) => Number(size.exec(out)?.[1]) === 48 * mebi);
    const summary = JSON.parse(
      await cluster.kubectl('get', '--raw', `/api/v1/nodes/${nodeName}/proxy/stats/summary`),
    );
    const { volume: volumes } = summary.pods.find(
      ({ podRef }: { readonly podRef: { readonly name: string } }) => podRef.name === 'grown',
    );
    const [reported] = volumes.filter(({ name }: { readonly name: string }) => name === 'data');
    assert.deepEqual(
      [reported.capacityBytes, reported.pvcRef],
      [48 * mebi, { name: 'grown', namespace: 'default' }],
    );
    await cluster.kubectl('delete', 'pod', 'grown');
    await gone('grown');
  });

  for (const step of ['NodeUnpublishVolume', 'NodeUnstageVolume'])
    it(`a block volume whose pod left no other traces is removed after kubeling was killed in ${step}`, async () => {
      const name = `lost-${step.toLowerCase()}`;
      await cluster.apply(volume(name), claim(name), pod(name, name, 'echo here'));
      await cluster.ready(name);
      const uid = await cluster.uidOf(name);
      driver.trouble({ [step]: 'hang' });
      const before = driver.calls(step, `handle-${name}`).length;
      await cluster.kubectl('delete', 'pod', name, '--wait=false');
      await cluster.node.until(
        `the driver to be called`,
        async () => driver.calls(step, `handle-${name}`).length > before,
      );
      await cluster.node.end('SIGKILL');
      // Removes the directory of the pod, as a user might do manually.
      await rm(join(rootDir, 'pods', uid), { recursive: true, force: true });
      driver.trouble({});
      await cluster.node.start();
      await gone(name);
      assert.equal(existsSync(join(base(), 'publish', name)), false);
      assert.equal(existsSync(join(base(), 'staging', name)), false);
    });

  it("block volumes are rejected while the driver's topology contradicts the node label", async () => {
    await driver.leave();
    const label = ['get', 'node', nodeName, '-o', `jsonpath={.metadata.labels}`];
    await cluster.until('the label', label, (out) => out.includes(`"topology.${driverName}/node":"here"`));
    driver.place('there');
    await driver.start('refused');
    assert.match(
      driver.calls('refused').at(-1) ?? '',
      /detected topology value collision: driver reported "topology\.devices\.test\.kubeling\/node":"there" but existing label is .*:"here"/,
    );
    const before = driver.calls('registered').length;
    driver.place('here');
    await cluster.node.until(
      'the driver to be registered',
      async () => driver.calls('registered').length > before,
    );
  });
});
