import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { DriverProcess } from '../csi/driver-process.ts';
import { LocalCluster } from './local-cluster.ts';
import { withoutKubectl } from './readme-tour.ts';
import { asDevice, claimed, claim as claimOf, json, persistentVolume, podWith } from './volume-objects.ts';

const driverName = 'devices.test.kubeling';
const block = { volumeMode: 'Block' };
const volume = (name: string) =>
  persistentVolume(name, { ...block, csi: { driver: driverName, volumeHandle: `handle-${name}` } });
const claim = (name: string) => claimOf(name, block);
const pod = (name: string, of: string, script: string) =>
  podWith(name, script, asDevice, { volumes: [{ name: 'data', ...claimed(of) }] });

/** With a driver in a process of its own, the real kubectl, the real containerd and devices that are real to the kernel. */
describe('devices of a CSI driver on kubeling up', { timeout: 900_000, skip: withoutKubectl() }, () => {
  let cluster: LocalCluster;
  let driver: DriverProcess;
  let folder: string;
  let rootDir: string;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'klg-csi-'));
    cluster = await LocalCluster.open();
    rootDir = join(cluster.node.dataDir, 'kubelet');
    driver = new DriverProcess(driverName, join(folder, 'driver'), join(rootDir, 'plugins_registry'));
    await driver.start();
    const spec = { attachRequired: false };
    await apply({ apiVersion: 'storage.k8s.io/v1', kind: 'CSIDriver', metadata: { name: driverName }, spec });
  });

  after(async () => {
    await driver?.kill();
    const left = await cluster?.leave();
    await rm(folder, { recursive: true, force: true });
    assert.deepEqual(left, []);
  });

  const apply = (...items: readonly object[]) => cluster.feed(json(...items), 'apply', '-f', '-');
  const ready = (name: string) =>
    cluster.kubectl('wait', '--for=condition=Ready', `pod/${name}`, '--timeout=90s');
  const said = (name: string, text: string) =>
    cluster.until(`what ${name} says`, ['logs', name], (out) => out.includes(text));
  const base = () => join(rootDir, 'plugins/kubernetes.io/csi/volumeDevices');
  const uidOf = (name: string) => cluster.kubectl('get', 'pod', name, '-o', 'jsonpath={.metadata.uid}');
  const isLeft = (name: string) =>
    readFileSync('/proc/self/mountinfo', 'utf8').includes(`/csi/volumeDevices/${name}/`) ||
    existsSync(join(base(), name)) ||
    readdirSync('/sys/block').some((loop) => {
      const file = join('/sys/block', loop, 'loop/backing_file');
      return existsSync(file) && readFileSync(file, 'utf8').includes(`handle-${name}`);
    });
  const gone = (name: string) => cluster.node.until('nothing to be left', async () => !isLeft(name));

  it('are staged once, published to each pod, and keep what is written to them', async () => {
    await apply(
      volume('both'),
      claim('both'),
      pod('first', 'both', 'echo -n first > /dev/data && sync; echo ok'),
    );
    await said('first', 'ok');
    await apply(pod('second', 'both', 'dd if=/dev/data bs=5 count=1 2>/dev/null; echo'));
    await said('second', 'first');
    const [first, second] = [await uidOf('first'), await uidOf('second')];
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

  it('that a driver refuses are told, and given once it does not', async () => {
    driver.trouble({ NodePublishVolume: 'out of paper' });
    await apply(volume('late'), claim('late'), pod('late', 'late', 'echo here'));
    await cluster.until('the event', ['get', 'events'], (out) =>
      out.includes(
        'MapVolume.MapPodDevice failed for volume "late" : rpc error: code = Internal desc = out of paper',
      ),
    );
    driver.trouble({});
    await ready('late');
    await cluster.kubectl('delete', 'pod', 'late');
    await gone('late');
  });

  it('are found again by a node that was killed, and wait for a driver that is away', async () => {
    await apply(volume('killed'), claim('killed'), pod('killed', 'killed', 'echo here'));
    await ready('killed');
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
});
