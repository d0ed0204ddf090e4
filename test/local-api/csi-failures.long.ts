import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { claim, claimed, driverName, driverObject, nodeName, pod, volume } from '../csi/csi-objects.ts';
import { DriverProcess } from '../csi/driver-process.ts';
import { eventually } from '../kubeling-node.ts';
import { LocalCluster } from './local-cluster.ts';
import { withoutKubectl } from './tour-commands.ts';

/** Waits longer than the two-minute deadlines of a driver call and of a pod's volumes. */
const long = async (what: string, isSo: () => Promise<boolean>) => {
  await eventually(what, async () => ((await isSo()) ? true : undefined), 400_000);
};

/**
 * The tests use a CSI driver in a separate process, the real kubectl, the real containerd and real
 * mounts.
 */
describe('CSI driver that responds slowly or never', {
  timeout: 1_800_000,
  skip: withoutKubectl(),
}, () => {
  let cluster: LocalCluster;
  let driver: DriverProcess;
  let folder: string;
  let rootDir: string;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'klg-csi-'));
    cluster = await LocalCluster.open();
    rootDir = join(cluster.node.dataDir, 'kubelet');
    driver = new DriverProcess(driverName, join(folder, 'driver'), join(rootDir, 'plugins_registry'));
    await cluster.apply(driverObject({ attachRequired: false }));
    await driver.start();
  });

  after(async () => {
    await driver?.kill();
    const left = await cluster?.leave();
    await rm(folder, { recursive: true, force: true });
    assert.deepEqual(left, []);
  });

  const ready = (name: string) =>
    cluster.kubectl('wait', '--for=condition=Ready', `pod/${name}`, '--timeout=80s');
  const csiNode = ['get', 'csinode', nodeName, '-o', 'json'];
  const mounts = () =>
    readFileSync('/proc/self/mountinfo', 'utf8')
      .split('\n')
      .filter((line) => line.includes(rootDir) && line.includes('csi'));

  /** Starts a pod with a volume of the CSI driver. */
  async function start(name: string): Promise<void> {
    mkdirSync(driver.contentOf(name), { recursive: true });
    writeFileSync(join(driver.contentOf(name), 'canary'), `${name}\n`);
    await cluster.apply(volume(name), claim(name), pod(name, claimed(name)));
  }

  for (const method of ['NodeStageVolume', 'NodePublishVolume'])
    it(`a hanging ${method} is reported, does not block other pods, and its pod starts when the driver works again`, async () => {
      const [stuck, other] = [`stuck-${method.toLowerCase()}`, `other-${method.toLowerCase()}`];
      driver.trouble({ [`${method} ${stuck}`]: 'hang' });
      await start(stuck);
      await cluster.node.until('the driver to be called', async () => driver.calls(method, stuck).length > 0);
      await start(other);
      await cluster.apply(pod(`plain-${other}`, { emptyDir: {} }));
      await ready(other);
      await ready(`plain-${other}`);
      assert.equal(await cluster.kubectl('exec', other, '--', 'cat', '/data/canary'), `${other}\n`);
      await cluster.kubectl('delete', 'pod', other, `plain-${other}`);
      const step = method === 'NodeStageVolume' ? 'MountDevice' : 'SetUp';
      const reported = `MountVolume.${step} failed for volume "${stuck}" : rpc error: code = DeadlineExceeded`;
      await long('the event', async () => (await cluster.kubectl('get', 'events')).includes(reported));
      driver.trouble({});
      await long('the pod to start', async () => {
        const { code } = await cluster.attempt(['exec', stuck, '--', 'cat', '/data/canary']);
        return code === 0;
      });
      await cluster.kubectl('delete', 'pod', stuck);
    });

  it('a hanging NodeUnpublishVolume is reported, does not block other pods, and is completed when the driver works again', async () => {
    await start('sticky');
    await ready('sticky');
    driver.trouble({ 'NodeUnpublishVolume sticky': 'hang' });
    await cluster.kubectl('delete', 'pod', 'sticky', '--wait=false');
    await cluster.node.until(
      'the driver to be called',
      async () => driver.calls('NodeUnpublishVolume', 'sticky').length > 0,
    );
    await start('loose');
    await ready('loose');
    await cluster.kubectl('delete', 'pod', 'loose');
    const reported = 'of the CSI driver disks.test.kubeling';
    await long('the event', async () => {
      const events = await cluster.kubectl('get', 'events', '--field-selector=reason=FailedVolumeRemoval');
      return (
        events.includes(reported) &&
        events.includes('cannot be unpublished: rpc error: code = DeadlineExceeded')
      );
    });
    assert.ok(
      mounts().some((line) => line.includes('/sticky/mount')),
      'it stays mounted',
    );
    driver.trouble({});
    await long(
      'the pod to be deleted',
      async () => !(await cluster.kubectl('get', 'pods', '-o', 'name')).includes('sticky'),
    );
    await long('all to be unmounted', async () => mounts().length === 0);
    assert.ok(existsSync(join(driver.contentOf('sticky'), 'canary')));
  });

  it('a hanging NodeUnstageVolume blocks no pod and is retried by a restarted kubeling', async () => {
    await start('held');
    await ready('held');
    driver.trouble({ 'NodeUnstageVolume held': 'hang' });
    await cluster.kubectl('delete', 'pod', 'held');
    await cluster.node.until(
      'the driver to be called',
      async () => driver.calls('NodeUnstageVolume', 'held').length > 0,
    );
    await start('free');
    await ready('free');
    await cluster.kubectl('delete', 'pod', 'free');
    await cluster.node.end('SIGKILL');
    assert.ok(
      mounts().some((line) => line.includes('globalmount')),
      'it is still staged',
    );
    driver.trouble({});
    await cluster.node.start();
    const staged = () => readdirSync(join(rootDir, 'plugins/kubernetes.io/csi', driverName));
    await long('the volume to be unstaged', async () => staged().length === 0);
    assert.deepEqual(mounts(), []);
  });

  it('a pod with a truncated vol_data.json keeps running, and a restarted kubeling removes its volume', async () => {
    await start('cut');
    await ready('cut');
    const { uid } = JSON.parse(await cluster.kubectl('get', 'pod', 'cut', '-o', 'json')).metadata;
    const data = join(rootDir, 'pods', uid, 'volumes/kubernetes.io~csi/cut/vol_data.json');
    await cluster.node.end('SIGKILL');
    writeFileSync(data, readFileSync(data, 'utf8').slice(0, 20));
    await cluster.node.start();
    assert.equal(await cluster.kubectl('exec', 'cut', '--', 'cat', '/data/canary'), 'cut\n');
    const text = await cluster.node.get('/metrics');
    assert.match(text, /^reconstruct_volume_operations_errors_total 1$/m);
    await cluster.kubectl('delete', 'pod', 'cut');
    await long('all to be unmounted', async () => mounts().length === 0);
    assert.equal(existsSync(data), false);
    assert.ok(existsSync(join(driver.contentOf('cut'), 'canary')));
  });

  it('a pod whose volume exceeds the attachment limit is rejected, and the limit is read again', async () => {
    await cluster.kubectl('delete', 'csidriver', driverName);
    await cluster.apply(
      driverObject({ nodeAllocatableUpdatePeriodSeconds: 3600 }),
      volume('surplus'),
      claim('surplus'),
      pod('surplus', claimed('surplus')),
    );
    const unique = `kubernetes.io/csi/${driverName}^surplus`;
    await cluster.kubectl(
      ...['patch', 'node', nodeName, '--subresource=status', '--type=merge', '-p'],
      JSON.stringify({ status: { volumesAttached: [{ name: unique, devicePath: '' }] } }),
    );
    const name = `csi-${createHash('sha256').update(`surplus${driverName}${nodeName}`).digest('hex')}`;
    await cluster.apply({
      apiVersion: 'storage.k8s.io/v1',
      kind: 'VolumeAttachment',
      metadata: { name },
      spec: { attacher: driverName, nodeName, source: { persistentVolumeName: 'surplus' } },
    });
    const attachError = { message: 'all slots are taken', errorCode: 8 };
    await cluster.kubectl(
      ...['patch', 'volumeattachment', name, '--subresource=status', '--type=merge', '-p'],
      JSON.stringify({ status: { attached: false, attachError } }),
    );
    await cluster.event('the event', 'all slots are taken');
    driver.limit(3);
    const phase = ['get', 'pod', 'surplus', '-o', 'jsonpath={.status.phase}'];
    await long('its rejection', async () => (await cluster.kubectl(...phase)) === 'Failed');
    const { status } = JSON.parse(await cluster.kubectl('get', 'pod', 'surplus', '-o', 'json'));
    assert.equal(status.reason, 'VolumeAttachmentLimitExceeded');
    assert.equal(
      status.message,
      'Pod was rejected: Node has reached its volume attachment limit, rejecting pod. MountVolume.WaitForAttach failed for volume "surplus" : all slots are taken',
    );
    await cluster.until('the new limit', csiNode, (out) => out.includes('"count": 3'));
    await cluster.kubectl('delete', 'pod', 'surplus');
  });
});
