import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { CsiWorld, disk, driver, otherUid, refusal, silence } from '../../../test/fakes/csi-world.ts';
import { podWith, worldUid } from '../../../test/fakes/payload-world.ts';
import { KubelingError } from '../../lib/index.ts';
import type { Pod, PodUid } from '../../pods/index.ts';
import { problemOf } from '../claims/bound-volume.ts';
import { inlineHandle } from './csi-paths.ts';
import type { CsiVolume } from './csi-request.ts';
import type { NodeCapability, NodePublishVolumeRequest, NodeStageVolumeRequest } from './gen/node.ts';

const { signal } = new AbortController();
const podOf = (uid: PodUid, pod: Pod = podWith([])): Pod => ({ ...pod, metadata: { ...pod.metadata, uid } });
const csiPod = podWith([{ name: 'v', csi: { driver } }]);
const inlineVolume = (more: object = {}) => ({ name: 'v', csi: { driver, ...more } });
const left = (world: CsiWorld) =>
  world.files.paths().filter((path) => path.includes('vol_data') || /mount$/.test(path));

describe('CSI volumes', () => {
  it('are staged once, published to each pod, and unstaged after the last pod', async () => {
    const world = new CsiWorld();
    const volumes = world.volumes();
    await volumes.setUp(podWith([]), disk, signal);
    await volumes.setUp(podOf(otherUid), disk, signal);
    await volumes.setUp(podOf(otherUid), disk, signal);
    assert.deepEqual(world.calls(), ['stage', 'publish', 'publish']);
    await world.ends(volumes, worldUid);
    assert.deepEqual(world.calls().slice(3), ['unpublish']);
    await world.ends(volumes, otherUid);
    assert.deepEqual(world.calls().slice(4), ['unpublish', 'unstage']);
    assert.deepEqual(left(world), []);
  });

  it('have the paths and data files of the Go kubelet', async () => {
    const world = new CsiWorld();
    await world.volumes().setUp(podWith([]), disk, signal);
    const at = `/root/pods/${worldUid}/volumes/kubernetes.io~csi/pv`;
    const [stage, publish] = world.requests as unknown as readonly [
      NodeStageVolumeRequest,
      NodePublishVolumeRequest,
    ];
    assert.match(
      stage.stagingTargetPath,
      /^\/root\/plugins\/kubernetes\.io\/csi\/d\.example\/[0-9a-f]{64}\/globalmount$/,
    );
    assert.equal(publish.stagingTargetPath, stage.stagingTargetPath);
    assert.equal(publish.targetPath, `${at}/mount`);
    assert.deepEqual(publish.volumeCapability, {
      block: undefined,
      mount: { fsType: 'ext4', mountFlags: ['noatime'], volumeMountGroup: '' },
      accessMode: { mode: 'SINGLE_NODE_WRITER' },
    });
    const { attachmentID, ...data } = JSON.parse(world.files.text(`${at}/vol_data.json`) ?? '');
    assert.match(attachmentID, /^csi-[0-9a-f]{64}$/);
    assert.deepEqual(data, {
      driverName: driver,
      nodeName: 'n1',
      bootID: 'boot-1',
      publishedBy: 'kubeling',
      specVolID: 'pv',
      volumeHandle: 'disk',
      volumeLifecycleMode: 'Persistent',
    });
  });

  it('are not staged for a driver without the capability', async () => {
    const world = new CsiWorld();
    world.can.clear();
    const volumes = world.volumes();
    await volumes.setUp(podWith([]), disk, signal);
    assert.equal((world.requests[0] as NodePublishVolumeRequest).stagingTargetPath, '');
    await world.ends(volumes, worldUid);
    assert.deepEqual(world.calls(), ['publish', 'unpublish']);
  });

  it('requeue the pod as soon as the missing driver registers', async () => {
    const world = new CsiWorld();
    world.isThere = false;
    const volumes = world.volumes();
    await assert.rejects(volumes.setUp(podWith([]), disk, signal), /driver name d\.example not found/);
    assert.equal(volumes.size, 1);
    world.isThere = true;
    volumes.driverRegistered(driver);
    assert.deepEqual(world.looked, [worldUid]);
    await volumes.setUp(podWith([]), disk, signal);
  });

  it('leave no files after the driver rejects them, and are retried with back-off', async () => {
    const world = new CsiWorld();
    world.troubles.set('stage', refusal());
    const volumes = world.volumes();
    const fails = () =>
      assert.rejects(volumes.setUp(podWith([]), disk, signal), /MountDevice failed .* desc = no/);
    await fails();
    assert.deepEqual(left(world), []);
    await fails();
    assert.deepEqual(world.calls(), ['stage']);
    await world.clock.advance(600);
    await fails();
    assert.deepEqual(world.calls(), ['stage', 'stage']);
    world.troubles.clear();
    await world.clock.advance(1_100);
    await volumes.setUp(podWith([]), disk, signal);
  });

  it('are unpublished when the pod terminates if the outcome of the publish call is unknown', async () => {
    const world = new CsiWorld();
    world.troubles.set('publish', silence());
    const volumes = world.volumes();
    await assert.rejects(volumes.setUp(podWith([]), disk, signal), /Unavailable/);
    assert.equal(left(world).length > 0, true);
    await world.ends(volumes, worldUid);
    assert.deepEqual(world.calls(), ['stage', 'publish', 'unpublish', 'unstage']);
    assert.deepEqual(left(world), []);
  });

  it('continue after a kill, and stay mounted while the driver is not registered', async () => {
    const world = new CsiWorld();
    await world.volumes().setUp(podWith([]), disk, signal);
    world.isThere = false;
    const later = world.volumes();
    await later.setUp(podWith([]), disk, signal);
    await assert.rejects(later.remove(worldUid, signal), { code: 'VOLUME_REMOVE', message: /d\.example/ });
    world.isThere = true;
    await world.ends(later, worldUid);
    assert.deepEqual(world.calls(), ['stage', 'publish', 'unpublish', 'unstage']);
  });

  it('stay mounted while the API server is unavailable and the secret cannot be read', async () => {
    const world = new CsiWorld();
    const named = { ...disk, stageSecret: { namespace: 'ns', name: 's' } };
    world.secret = { data: {} };
    await world.volumes().setUp(podWith([]), named, signal);
    world.secret = new KubelingError('API_UNAVAILABLE', 'away');
    await world.volumes().setUp(podWith([]), named, signal);
    assert.deepEqual(world.calls(), ['stage', 'publish']);
    world.secret = undefined;
    await assert.rejects(world.volumes().setUp(podWith([]), named, signal), /secrets "s" not found/);
  });

  it('are not assumed to be mounted if a previous kubelet got no reply', async () => {
    const world = new CsiWorld();
    const volumes = world.volumes();
    const { publish } = world.client;
    world.client.publish = async (request, inner) => {
      await publish(request, inner);
      throw silence();
    };
    await assert.rejects(volumes.setUp(podWith([]), disk, signal), /Unavailable/);
    world.isThere = false;
    await assert.rejects(world.volumes().setUp(podWith([]), disk, signal), { code: 'VOLUME_UNUSABLE' });
  });

  it('are unstaged by a sweep only if no pod uses them', async () => {
    const world = new CsiWorld();
    world.troubles.set('publish', refusal());
    await assert.rejects(world.volumes().setUp(podWith([]), disk, signal));
    const later = world.volumes();
    world.noted = ['disk'];
    await world.runs(later, 70_000);
    assert.deepEqual(world.calls(), ['stage', 'publish']);
    world.noted = [];
    await world.runs(later, 70_000);
    assert.deepEqual(world.calls().slice(2), ['unstage']);
    assert.deepEqual(left(world), []);
  });

  it('do not block the pod when unstaging fails, and are retried', async () => {
    const world = new CsiWorld();
    const volumes = world.volumes();
    await volumes.setUp(podWith([]), disk, signal);
    world.troubles.set('unstage', refusal());
    await world.ends(volumes, worldUid);
    await world.runs(volumes, 130_000);
    assert.equal(world.logs.records.toArray().length, 1);
    world.troubles.clear();
    await world.runs(volumes, 70_000);
    assert.deepEqual(left(world), []);
  });

  it('are never removed with content or while they are mounted', async () => {
    const world = new CsiWorld();
    const volumes = world.volumes();
    await volumes.setUp(podWith([]), disk, signal);
    const mount = volumes.mountPathOf(worldUid, 'pv');
    // A driver that reports an unmount that did not happen.
    world.client.unpublish = async () => {};
    await assert.rejects(volumes.remove(worldUid, signal), /is still mounted, by the CSI driver d\.example/);
    await world.files.unmount(mount);
    await world.files.writeFile(`${mount}/precious`, Buffer.from('x'), { mode: 0o600 });
    await assert.rejects(volumes.remove(worldUid, signal), /has content/);
    assert.equal(world.files.text(`${mount}/precious`), 'x');
  });

  it('wait for their attachment and pass on its publish context', async () => {
    const world = new CsiWorld();
    world.driver = undefined;
    world.isListed = false;
    const volumes = world.volumes();
    await world.runs(volumes);
    const fails = (why: RegExp) => assert.rejects(volumes.setUp(podWith([]), disk, signal), why);
    await fails(/WaitForAttach failed for volume "pv" : Volume not attached according to node status/);
    assert.deepEqual(volumes.inUse(), ['kubernetes.io/csi/d.example^disk']);
    world.isListed = true;
    await fails(/volumeattachments\.storage\.k8s\.io "csi-[0-9a-f]{64}" not found/);
    const spec = { attacher: driver, nodeName: 'n1', source: {} };
    world.attachment = { spec, status: { attached: false, attachError: { message: 'no room' } } };
    await fails(/no room/);
    world.attachment = { spec, status: { attached: true, attachmentMetadata: { device: 'sda' } } };
    await volumes.setUp(podWith([]), disk, signal);
    assert.deepEqual(world.requests[0]?.publishContext, { device: 'sda' });
    await world.ends(volumes, worldUid);
    assert.deepEqual(volumes.inUse(), []);
  });

  it('reject the pod after two minutes at the attach limit, if the driver updates its limits', async () => {
    const world = new CsiWorld();
    const spec = { attacher: driver, nodeName: 'n1', source: {} };
    const attachError = { message: 'full', errorCode: 8 };
    world.attachment = { spec, status: { attached: false, attachError } };
    const volumes = world.volumes();
    const codeAfter = async (ms: number) => {
      await world.clock.advance(ms);
      return await volumes.setUp(podWith([]), disk, signal).then(
        () => 'done',
        ({ code, message }) => `${code} ${message}`,
      );
    };
    const why = 'MountVolume.WaitForAttach failed for volume "pv" : full';
    world.driver = { spec: {} };
    assert.equal(await codeAfter(200_000), `VOLUME_UNUSABLE ${why}`);
    world.driver = { spec: { nodeAllocatableUpdatePeriodSeconds: 10 } };
    assert.equal(await codeAfter(0), `VOLUME_UNUSABLE ${why}`);
    assert.equal(await codeAfter(122_999), `VOLUME_UNUSABLE ${why}`);
    assert.deepEqual(world.history, []);
    assert.equal(await codeAfter(1), `VOLUME_ATTACH_LIMIT ${why}`);
    assert.deepEqual(world.history, [`limit ${driver}`]);
    await world.ends(volumes, worldUid);
    assert.equal(await codeAfter(0), `VOLUME_UNUSABLE ${why}`);
  });

  it('stay in use only while the pod that waits for them exists', async () => {
    const world = new CsiWorld();
    world.driver = undefined;
    world.isListed = false;
    const volumes = world.volumes();
    await assert.rejects(volumes.setUp(podWith([]), disk, signal), /not attached/);
    await world.runs(volumes);
    assert.deepEqual(volumes.inUse(), ['kubernetes.io/csi/d.example^disk']);
    await world.ends(volumes, worldUid);
    assert.deepEqual(volumes.inUse(), []);
  });

  it('of a previous kubelet are in use from the start', async () => {
    const world = new CsiWorld();
    await world.volumes().setUp(podWith([]), disk, signal);
    const later = world.volumes();
    assert.equal(later.inUse(), undefined);
    await world.runs(later);
    assert.deepEqual(later.inUse(), ['kubernetes.io/csi/d.example^disk']);
  });

  it('of a previous kubelet are in use from the start as block volumes', async () => {
    const world = new CsiWorld();
    world.driver = undefined;
    world.isListed = false;
    const show = async () => {};
    await assert.rejects(world.volumes().devices.setUp(podWith([]), disk, show, signal), /not attached/);
    const later = world.volumes();
    await world.runs(later);
    assert.deepEqual(later.inUse(), ['kubernetes.io/csi/d.example^disk']);
    assert.deepEqual(world.reconstructed, ['reconstructed success']);
    await later.devices.remove(worldUid, signal);
    assert.deepEqual(later.inUse(), []);
  });

  it('inline require a driver with the Ephemeral mode', async () => {
    const world = new CsiWorld();
    const volumes = world.volumes();
    const fails = (why: RegExp) => assert.rejects(volumes.setUpInline(csiPod, inlineVolume(), signal), why);
    await fails(
      /volume mode "Ephemeral" not supported by driver d\.example \(only supports \["Persistent"\]\)/,
    );
    world.driver = undefined;
    volumes.driverRegistered(driver);
    await fails(/\(no CSIDriver object\)/);
    assert.deepEqual(left(world), []);
  });

  it('inline include the pod info and tokens that the driver requires', async () => {
    const world = new CsiWorld();
    world.driver = {
      spec: { volumeLifecycleModes: ['Ephemeral'], podInfoOnMount: true, tokenRequests: [{ audience: 'x' }] },
    };
    world.secret = { data: { key: Buffer.from('open').toString('base64') } };
    const volumes = world.volumes();
    const volume = inlineVolume({ readOnly: true, nodePublishSecretRef: { name: 's' } });
    await volumes.setUpInline(csiPod, volume, signal);
    const [request] = world.requests as unknown as readonly [NodePublishVolumeRequest];
    assert.equal(request.volumeId, inlineHandle(worldUid, 'v'));
    assert.equal(request.readonly, true);
    assert.deepEqual(request.secrets, { key: 'open' });
    assert.equal(request.volumeContext['csi.storage.k8s.io/pod.uid'], worldUid);
    assert.equal(
      request.volumeContext['csi.storage.k8s.io/serviceAccount.tokens'],
      '{"x":{"token":"t-x","expirationTimestamp":"1970-01-01T00:00:00Z"}}',
    );
    await world.ends(volumes, worldUid);
    assert.deepEqual(world.calls(), ['publish', 'unpublish']);
  });

  it('that need attachment are rejected where controller attach is disabled', async () => {
    const world = new CsiWorld();
    world.driver = undefined;
    const volumes = world.volumes({ attaching: 'node' });
    await world.runs(volumes);
    const refused = await volumes.setUp(podWith([]), disk, signal).catch((error: unknown) => error);
    const problem = problemOf('v', refused);
    assert.equal(problem.kind === 'unmounted' && problem.reason, 'FailedAttachVolume');
    assert.equal(
      problem.message,
      'AttachVolume.Attach failed for volume "pv" : attaching volumes from the kubelet is not supported',
    );
    assert.deepEqual([world.calls(), volumes.inUse()], [[], []]);
    await world.clock.advance(1_000);
    world.driver = { spec: { attachRequired: false } };
    await volumes.setUp(podWith([]), disk, signal);
    assert.deepEqual(world.calls(), ['stage', 'publish']);
  });

  it('are republished to a running pod if the driver requires it, and stay if that fails', async () => {
    const world = new CsiWorld();
    const volumes = world.volumes();
    await volumes.setUp(podWith([]), disk, signal);
    const keepUp = async (ms = 0) => {
      volumes.maintain(podWith([]), disk);
      await world.runs(volumes, ms);
    };
    await keepUp();
    assert.deepEqual(world.calls(), ['stage', 'publish']);
    world.driver = { spec: { attachRequired: false, requiresRepublish: true } };
    await keepUp();
    assert.deepEqual(world.calls(), ['stage', 'publish', 'publish']);
    world.troubles.set('publish', refusal());
    await keepUp(600);
    assert.deepEqual(world.calls().slice(3), ['publish', 'publish']);
    const told =
      'pod FailedMount MountVolume.SetUp failed for volume "pv" : rpc error: code = Internal desc = no';
    assert.deepEqual(world.events, [told, told]);
    assert.equal(await world.files.mountAt(volumes.mountPathOf(worldUid, 'pv')), 'other');
    assert.equal(left(world).length, 4);
  });

  it('cancel the driver call when the pod terminates', async () => {
    const world = new CsiWorld();
    const volumes = world.volumes();
    await volumes.setUp(podWith([]), disk, signal);
    world.driver = { spec: { attachRequired: false, requiresRepublish: true } };
    world.client.publish = (_request, inner) =>
      new Promise((_resolve, reject) => inner.addEventListener('abort', () => reject(inner.reason)));
    const end = new AbortController();
    const running = volumes.run(end.signal).catch(() => {});
    volumes.maintain(podWith([]), disk);
    await world.clock.advance(0);
    await world.ends(volumes, worldUid);
    assert.deepEqual(world.calls(), ['stage', 'publish', 'unpublish', 'unstage']);
    end.abort(new Error('over'));
    await running;
  });

  it('get the group of the pod according to the fsGroupPolicy', async () => {
    const pod = podWith([], { securityContext: { fsGroup: 77 } });
    const groupOf = async (policy: string | undefined, volume: CsiVolume, can: NodeCapability[] = []) => {
      const world = new CsiWorld();
      for (const one of can) world.can.add(one);
      world.driver = { spec: { attachRequired: false, fsGroupPolicy: policy } };
      const volumes = world.volumes();
      await volumes.setUp(pod, volume, signal);
      const asked = world.requests[0]?.volumeCapability?.mount?.volumeMountGroup;
      return [(await world.files.ownerOf(volumes.mountPathOf(worldUid, 'pv'))).group, asked];
    };
    assert.deepEqual(await groupOf(undefined, disk), [77, '']);
    assert.deepEqual(await groupOf(undefined, { ...disk, fsType: '' }), [0, '']);
    assert.deepEqual(await groupOf(undefined, { ...disk, accessMode: 'ReadWriteMany' }), [0, '']);
    assert.deepEqual(await groupOf('File', { ...disk, fsType: '' }), [77, '']);
    assert.deepEqual(await groupOf('None', disk), [0, '']);
    assert.deepEqual(await groupOf('File', { ...disk, readOnly: true }), [0, '']);
    assert.deepEqual(await groupOf('File', disk, ['VOLUME_MOUNT_GROUP']), [0, '77']);
  });

  it('with a damaged data file are removed only if they are not mounted', async () => {
    const world = new CsiWorld();
    const volumes = world.volumes();
    await volumes.setUp(podWith([]), disk, signal);
    const mount = volumes.mountPathOf(worldUid, 'pv');
    await world.files.replaceFile(mount.replace(/mount$/, 'vol_data.json'), Buffer.from('{"dri'), 0o644);
    await assert.rejects(volumes.remove(worldUid, signal), /is still mounted, and nothing says by which/);
    await world.files.unmount(mount);
    await world.ends(volumes, worldUid);
  });
});
