import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import {
  claim,
  claimed,
  driverName,
  driverObject,
  inline,
  nodeName,
  pod,
  volume,
} from '../csi/csi-objects.ts';
import { DriverProcess } from '../csi/driver-process.ts';
import { LocalCluster } from './local-cluster.ts';
import { withoutKubectl } from './tour-commands.ts';

/**
 * The tests use a CSI driver in a separate process, the real kubectl, the real containerd and real
 * mounts.
 */
describe('volumes of a CSI driver on kubeling up', { timeout: 900_000, skip: withoutKubectl() }, () => {
  let cluster: LocalCluster;
  let driver: DriverProcess;
  let folder: string;
  let rootDir: string;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'klg-csi-'));
    cluster = await LocalCluster.open();
    rootDir = join(cluster.node.dataDir, 'kubelet');
    driver = new DriverProcess(driverName, join(folder, 'driver'), join(rootDir, 'plugins_registry'));
  });

  after(async () => {
    // Pods still run when the node is removed; the content of their volumes must survive this.
    await driver?.kill();
    const left = await cluster?.leave();
    const lost = readdirSync(join(driver.folder, 'volumes')).filter(
      (name) => !name.startsWith('csi-') && !existsSync(join(driver.contentOf(name), 'canary')),
    );
    await rm(folder, { recursive: true, force: true });
    assert.deepEqual([left, lost], [[], []]);
  });

  function content(name: string): void {
    mkdirSync(driver.contentOf(name), { recursive: true });
    writeFileSync(join(driver.contentOf(name), 'canary'), `${name}\n`);
  }

  const mounts = (part: string) =>
    readFileSync('/proc/self/mountinfo', 'utf8')
      .split('\n')
      .filter((line) => line.includes(rootDir) && line.includes(part)).length;
  const staged = () => {
    const at = join(rootDir, 'plugins/kubernetes.io/csi', driverName);
    return existsSync(at) ? readdirSync(at) : [];
  };
  const csiNode = ['get', 'csinode', nodeName, '-o', 'json'];

  it('a pod reports the CSI driver it waits for, and its volume is mounted when the driver has registered', async () => {
    await cluster.apply(
      driverObject({
        attachRequired: false,
        podInfoOnMount: true,
        volumeLifecycleModes: ['Persistent', 'Ephemeral'],
      }),
    );
    await cluster.apply(pod('own', inline()));
    await cluster.event(
      'the event',
      `MountVolume.SetUp failed for volume "data" : kubernetes.io/csi: mounter.SetUpAt failed to get CSI client: driver name ${driverName} not found in the list of registered CSI drivers`,
    );
    const begun = performance.now();
    await driver.start();
    await cluster.ready('own');
    const tookMs = performance.now() - begun;
    assert.ok(tookMs < 30_000, `it took ${tookMs} ms`);
  });

  it('a registered CSI driver is published in CSINode', async () => {
    const text = await cluster.until('the driver', csiNode, (out) => out.includes(driverName));
    const { spec, metadata } = JSON.parse(text);
    assert.deepEqual(spec.drivers, [
      {
        name: driverName,
        nodeID: `${driverName}-node`,
        topologyKeys: [`topology.${driverName}/node`],
        allocatable: { count: 7 },
      },
    ]);
    assert.equal(metadata.ownerReferences[0].kind, 'Node');
    const node = JSON.parse(await cluster.kubectl('get', 'node', nodeName, '-o', 'json'));
    assert.equal(node.metadata.labels[`topology.${driverName}/node`], 'here');
    assert.equal(
      node.metadata.annotations['csi.volume.kubernetes.io/nodeid'],
      JSON.stringify({ [driverName]: `${driverName}-node` }),
    );
  });

  it("an ephemeral CSI volume has the driver's content, and the driver receives the pod info", async () => {
    const reported = JSON.parse(await cluster.kubectl('exec', 'own', '--', 'cat', '/data/told.json'));
    const { uid } = JSON.parse(await cluster.kubectl('get', 'pod', 'own', '-o', 'json')).metadata;
    assert.deepEqual(reported.volume_context, {
      size: 'small',
      'csi.storage.k8s.io/pod.name': 'own',
      'csi.storage.k8s.io/pod.namespace': 'default',
      'csi.storage.k8s.io/pod.uid': uid,
      'csi.storage.k8s.io/serviceAccount.name': 'default',
      'csi.storage.k8s.io/ephemeral': 'true',
    });
    const at = join(rootDir, 'pods', uid, 'volumes/kubernetes.io~csi/data');
    const data = JSON.parse(readFileSync(join(at, 'vol_data.json'), 'utf8'));
    assert.equal(data.volumeLifecycleMode, 'Ephemeral');
    assert.equal(data.specVolID, 'data');
    await cluster.kubectl('exec', 'own', '--', 'touch', '/data/written');
    await cluster.kubectl('delete', 'pod', 'own');
    assert.equal(existsSync(at), false);
    assert.equal(mounts('kubernetes.io~csi'), 0);
    assert.ok(existsSync(join(driver.contentOf(data.volumeHandle), 'written')), 'its content is kept');
  });

  it('secrets, readOnly and service account tokens are passed to the CSI driver', async () => {
    await cluster.apply(
      driverObject({
        attachRequired: false,
        volumeLifecycleModes: ['Persistent', 'Ephemeral'],
        tokenRequests: [{ audience: 'vault' }],
      }),
      {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name: 'key', namespace: 'default' },
        stringData: { password: 'open' },
      },
      pod('sealed', inline({ readOnly: true, nodePublishSecretRef: { name: 'key' } })),
    );
    await cluster.ready('sealed');
    const reported = JSON.parse(await cluster.kubectl('exec', 'sealed', '--', 'cat', '/data/told.json'));
    assert.deepEqual(reported.secrets, { password: 'open' });
    const tokens = JSON.parse(reported.volume_context['csi.storage.k8s.io/serviceAccount.tokens']);
    assert.match(tokens.vault.token, /^ey/);
    assert.match(tokens.vault.expirationTimestamp, /^\d{4}-.*Z$/);
    const { code, stderr } = await cluster.attempt(['exec', 'sealed', '--', 'touch', '/data/x']);
    assert.notEqual(code, 0);
    assert.match(stderr, /Read-only/);
    await cluster.kubectl('delete', 'pod', 'sealed');
  });

  it('a volume is republished to a running pod with new tokens where the CSI driver requires it', async () => {
    await cluster.apply(
      driverObject({
        attachRequired: false,
        requiresRepublish: true,
        volumeLifecycleModes: ['Persistent', 'Ephemeral'],
      }),
      pod('fresh', inline({ nodePublishSecretRef: { name: 'key' } })),
    );
    await cluster.ready('fresh');
    await cluster.kubectl(
      'patch',
      'secret',
      'key',
      '-p',
      JSON.stringify({ stringData: { password: 'new' } }),
    );
    await cluster.kubectl('annotate', 'pod', 'fresh', 'look=now');
    const reported = ['exec', 'fresh', '--', 'cat', '/data/told.json'];
    await cluster.until('the new secret', reported, (out) => out.includes('"password":"new"'));
    await cluster.kubectl('delete', 'pod', 'fresh');
    await cluster.apply(
      driverObject({
        attachRequired: false,
        volumeLifecycleModes: ['Persistent', 'Ephemeral'],
        tokenRequests: [{ audience: 'vault' }],
      }),
    );
  });

  it('a volume is staged once for two pods, and unstaged after the last pod', async () => {
    content('shared');
    await cluster.apply(
      volume('shared'),
      claim('shared'),
      pod('one', claimed('shared')),
      pod('two', claimed('shared')),
    );
    await cluster.ready('one');
    await cluster.ready('two');
    assert.equal(await cluster.kubectl('logs', 'one'), 'shared\n');
    await cluster.kubectl('exec', 'one', '--', 'sh', '-c', 'echo hello > /data/note');
    assert.equal(await cluster.kubectl('exec', 'two', '--', 'cat', '/data/note'), 'hello\n');
    assert.equal(driver.calls('NodeStageVolume', 'shared').length, 1);
    assert.equal(driver.calls('NodePublishVolume', 'shared').length, 2);
    const [hash = ''] = staged();
    const at = join(rootDir, 'plugins/kubernetes.io/csi', driverName, hash, 'vol_data.json');
    assert.deepEqual(JSON.parse(readFileSync(at, 'utf8')), {
      driverName,
      volumeHandle: 'shared',
    });
    await cluster.kubectl('delete', 'pod', 'one');
    assert.equal(await cluster.kubectl('exec', 'two', '--', 'cat', '/data/note'), 'hello\n');
    assert.equal(driver.calls('NodeUnstageVolume', 'shared').length, 0);
    await cluster.kubectl('delete', 'pod', 'two');
    await cluster.node.until('the volume to be unstaged', async () => staged().length === 0);
    assert.equal(driver.calls('NodeUnstageVolume', 'shared').length, 1);
    assert.equal(mounts('csi'), 0);
    assert.equal(readFileSync(join(driver.contentOf('shared'), 'note'), 'utf8'), 'hello\n');
  });

  it('a volume is expanded when it is mounted, and while a pod that uses it runs', async () => {
    content('growing');
    await cluster.apply(volume('growing'), claim('growing'));
    const bound = ['get', 'pvc', 'growing', '-o', 'json'];
    await cluster.until('the claim to be bound', bound, (out) => JSON.parse(out).status.phase === 'Bound');
    /** Writes the objects that the external resizer writes after it has expanded the volume. */
    const grow = async (storage: string) => {
      const to = (spec: object) => ['--type=merge', '-p', JSON.stringify(spec)];
      await cluster.kubectl('patch', 'pv', 'growing', ...to({ spec: { capacity: { storage } } }));
      const status = {
        allocatedResources: { storage },
        allocatedResourceStatuses: { storage: 'NodeResizePending' },
      };
      await cluster.kubectl('patch', 'pvc', 'growing', '--subresource=status', ...to({ status }));
    };
    const grew = async (storage: string, bytes: number) => {
      const text = await cluster.until('the claim to have grown', bound, (out) =>
        out.includes(`"capacity": {\n            "storage": "${storage}"`),
      );
      assert.equal(JSON.parse(text).status.allocatedResourceStatuses, undefined);
      assert.equal(readFileSync(join(driver.contentOf('growing'), 'size'), 'utf8'), `${bytes}\n`);
    };
    await grow('2Gi');
    await cluster.apply(pod('growing', claimed('growing')));
    await cluster.ready('growing');
    await grew('2Gi', 2 ** 31);
    await grow('3Gi');
    await cluster.kubectl('annotate', 'pod', 'growing', 'look=now');
    await grew('3Gi', 3 * 2 ** 30);
    const events = await cluster.until(
      'the events',
      ['get', 'events', '--field-selector=reason=FileSystemResizeSuccessful'],
      (out) => out.includes('persistentvolumeclaim/growing') && out.includes('pod/growing'),
    );
    assert.match(events, /MountVolume.NodeExpandVolume succeeded for volume "growing"/);
    await cluster.kubectl('delete', 'pod', 'growing');
  });

  it('usage and an abnormal condition of a CSI volume appear in the metrics', async () => {
    content('measured');
    writeFileSync(join(driver.contentOf('measured'), 'broken'), '');
    await cluster.apply(volume('measured'), claim('measured'), pod('measured', claimed('measured')));
    await cluster.ready('measured');
    const text = await cluster.until(
      'the metrics',
      ['get', '--raw', `/api/v1/nodes/${nodeName}/proxy/metrics`],
      (out) => out.includes('persistentvolumeclaim="measured"'),
    );
    const figures = Object.fromEntries(
      [...text.matchAll(/^kubelet_volume_stats_(\w+)\{.*persistentvolumeclaim="measured"\} (.+)$/gm)].map(
        ([, name, value]) => [name, Number(value)],
      ),
    );
    assert.deepEqual(figures, {
      available_bytes: 700,
      capacity_bytes: 1000,
      health_status_abnormal: 1,
      inodes: 50,
      inodes_free: 30,
      inodes_used: 20,
      used_bytes: 300,
    });
    const publish = `driver_name="${driverName}",method_name="/csi.v1.Node/NodePublishVolume",grpc_status_code="OK"`;
    assert.ok(text.includes(`csi_operations_seconds_count{${publish}`), 'driver calls are counted');
    const summary = JSON.parse(
      await cluster.kubectl('get', '--raw', `/api/v1/nodes/${nodeName}/proxy/stats/summary`),
    );
    const reported = summary.pods.flatMap(
      ({ volume: all = [] }: { readonly volume?: readonly object[] }) => all,
    );
    const { time: _time, ...ofClaim } = reported.find(
      ({ pvcRef }: { readonly pvcRef?: { readonly name: string } }) => pvcRef?.name === 'measured',
    );
    assert.deepEqual(ofClaim, {
      availableBytes: 700,
      capacityBytes: 1000,
      inodes: 50,
      inodesFree: 30,
      inodesUsed: 20,
      usedBytes: 300,
      name: 'data',
      pvcRef: { name: 'measured', namespace: 'default' },
      volumeHealthStats: { abnormal: true },
    });
    await cluster.kubectl('delete', 'pod', 'measured');
  });

  it('a failing CSI driver is reported in an event and retried, while other pods start', async () => {
    content('stubborn');
    driver.trouble({ NodePublishVolume: 'not in the mood' });
    await cluster.apply(volume('stubborn'), claim('stubborn'), pod('stubborn', claimed('stubborn')));
    await cluster.event(
      'the event',
      'MountVolume.SetUp failed for volume "stubborn" : rpc error: code = Internal desc = not in the mood',
    );
    await cluster.apply(pod('plain', { emptyDir: {} }));
    await cluster.ready('plain');
    driver.trouble({});
    await cluster.ready('stubborn');
    await cluster.kubectl('delete', 'pod', 'stubborn', 'plain');
    await cluster.node.until('the volume to be unstaged', async () => staged().length === 0);
  });

  it('a volume stays mounted when the CSI driver is killed and registers again while a pod uses the volume', async () => {
    content('lasting');
    await cluster.apply(volume('lasting'), claim('lasting'), pod('lasting', claimed('lasting')));
    await cluster.ready('lasting');
    await driver.kill();
    assert.equal(await cluster.kubectl('exec', 'lasting', '--', 'cat', '/data/canary'), 'lasting\n');
    await driver.start();
    assert.equal(await cluster.kubectl('exec', 'lasting', '--', 'cat', '/data/canary'), 'lasting\n');
    const published = driver.calls('NodePublishVolume', 'lasting').length;
    // The driver deregisters: it is removed from CSINode, and the pod cannot terminate before the
    // driver is back.
    await driver.leave();
    await cluster.until('the driver to be removed', csiNode, (out) => !out.includes(`"${driverName}"`));
    await cluster.kubectl('delete', 'pod', 'lasting', '--wait=false');
    await cluster.until('it to terminate', ['get', 'pod', 'lasting', '-o', 'json'], (out) =>
      out.includes('"deletionTimestamp"'),
    );
    await driver.start();
    await cluster.until('it to be deleted', ['get', 'pods', '-o', 'name'], (out) => !out.includes('lasting'));
    assert.equal(driver.calls('NodePublishVolume', 'lasting').length, published);
    await cluster.node.until('the volume to be unstaged', async () => staged().length === 0);
    assert.equal(mounts('csi'), 0);
  });

  it('mounting a volume continues at the reached step when kubeling is killed between the steps', async () => {
    content('halfway');
    driver.trouble({ NodePublishVolume: 'hang' });
    await cluster.apply(volume('halfway'), claim('halfway'), pod('halfway', claimed('halfway')));
    await cluster.node.until(
      'the driver to be called',
      async () => driver.calls('NodePublishVolume', 'halfway').length > 0,
    );
    await cluster.node.end('SIGKILL');
    driver.trouble({});
    await cluster.node.start();
    await cluster.ready('halfway');
    assert.equal(await cluster.kubectl('logs', 'halfway'), 'halfway\n');
    assert.equal(mounts('globalmount'), 1);
    await cluster.node.end('SIGKILL');
    await cluster.node.start();
    // The exec is retried, because the node is ready before its watch has delivered the pod.
    const read = ['exec', 'halfway', '--', 'cat', '/data/canary'];
    await cluster.until('the content', read, (out) => out === 'halfway\n');
    await cluster.kubectl('delete', 'pod', 'halfway');
    await cluster.node.until('the volume to be unstaged', async () => staged().length === 0);
    assert.equal(mounts('csi'), 0);
  });

  it('a volume is unstaged when its pod is deleted while kubeling is down', async () => {
    content('widow');
    driver.trouble({ NodePublishVolume: 'hang' });
    await cluster.apply(volume('widow'), claim('widow'), pod('widow', claimed('widow')));
    await cluster.node.until(
      'the driver to be called',
      async () => driver.calls('NodePublishVolume', 'widow').length > 0,
    );
    await cluster.kubectl('delete', 'pod', 'widow', '--wait=false');
    await cluster.node.end('SIGKILL');
    driver.trouble({});
    await cluster.node.start();
    await cluster.until('it to be deleted', ['get', 'pods', '-o', 'name'], (out) => !out.includes('widow'));
    await cluster.node.until('the volume to be unstaged', async () => staged().length === 0);
    assert.equal(mounts('csi'), 0);
  });

  it('a volume that must be attached waits for the node status and the VolumeAttachment', async () => {
    content('attached');
    await cluster.kubectl('delete', 'csidriver', driverName);
    await cluster.apply(volume('attached'), claim('attached'), pod('attached', claimed('attached')));
    const unique = `kubernetes.io/csi/${driverName}^attached`;
    await cluster.event(
      'the event',
      'MountVolume.WaitForAttach failed for volume "attached" : Volume not attached according to node status',
    );
    const status = ['get', 'node', nodeName, '-o', 'jsonpath={.status.volumesInUse}'];
    await cluster.until('the volume to be in use', status, (out) => out.includes(unique));
    await cluster.kubectl(
      ...['patch', 'node', nodeName, '--subresource=status', '--type=merge', '-p'],
      JSON.stringify({ status: { volumesAttached: [{ name: unique, devicePath: '' }] } }),
    );
    await cluster.event('the next event', 'volumeattachments.storage.k8s.io "csi-');
    const events = await cluster.kubectl('get', 'events');
    const [, name = ''] = /volumeattachments.storage.k8s.io "(csi-[0-9a-f]+)" not found/.exec(events) ?? [];
    await cluster.apply({
      apiVersion: 'storage.k8s.io/v1',
      kind: 'VolumeAttachment',
      metadata: { name },
      spec: { attacher: driverName, nodeName, source: { persistentVolumeName: 'attached' } },
    });
    await cluster.kubectl(
      ...['patch', 'volumeattachment', name, '--subresource=status', '--type=merge', '-p'],
      JSON.stringify({ status: { attached: true } }),
    );
    await cluster.ready('attached');
    assert.equal(await cluster.kubectl('logs', 'attached'), 'attached\n');
    await cluster.kubectl('delete', 'pod', 'attached');
    await cluster.until('it to be out of use', status, (out) => !out.includes(unique));
  });

  it('an ephemeral CSI volume is rejected without a CSIDriver object', async () => {
    await cluster.apply(pod('refused', inline()));
    await cluster.event(
      'the event',
      `volume mode "Ephemeral" not supported by driver ${driverName} (no CSIDriver object)`,
    );
    await cluster.kubectl('delete', 'pod', 'refused');
  });

  it('the content of a volume survives the removal of the node while it is mounted', async () => {
    content('last');
    await cluster.apply(
      driverObject({ attachRequired: false }),
      volume('last'),
      claim('last'),
      pod('last', claimed('last')),
    );
    await cluster.ready('last');
  });
});
