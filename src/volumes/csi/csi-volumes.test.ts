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
const left = (environment: CsiWorld) =>
  environment.files.paths().filter((path) => path.includes('vol_data') || /mount$/.test(path));

describe('CSI volumes', () => {
  it('a CSI volume is staged once, published to each pod, and unstaged after the last pod', async () => {
    const environment = new CsiWorld();
    const volumes = environment.volumes();
    await volumes.setUp(podWith([]), disk, signal);
    await volumes.setUp(podOf(otherUid), disk, signal);
    await volumes.setUp(podOf(otherUid), disk, signal);
    assert.deepEqual(environment.calls(), ['stage', 'publish', 'publish']);
    await environment.ends(volumes, worldUid);
    assert.deepEqual(environment.calls().slice(3), ['unpublish']);
    await environment.ends(volumes, otherUid);
    assert.deepEqual(environment.calls().slice(4), ['unpublish', 'unstage']);
    assert.deepEqual(left(environment), []);
  });

  it('CSI volumes have the paths and data files of the Go kubelet', async () => {
    const environment = new CsiWorld();
    await environment.volumes().setUp(podWith([]), disk, signal);
    const at = `/root/pods/${worldUid}/volumes/kubernetes.io~csi/pv`;
    const [stage, publish] = environment.requests as unknown as readonly [
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
    const { attachmentID, ...data } = JSON.parse(environment.files.text(`${at}/vol_data.json`) ?? '');
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

  it('a CSI volume is not staged when its driver lacks the capability STAGE_UNSTAGE_VOLUME', async () => {
    const environment = new CsiWorld();
    environment.can.clear();
    const volumes = environment.volumes();
    await volumes.setUp(podWith([]), disk, signal);
    assert.equal((environment.requests[0] as NodePublishVolumeRequest).stagingTargetPath, '');
    await environment.ends(volumes, worldUid);
    assert.deepEqual(environment.calls(), ['publish', 'unpublish']);
  });

  it('a pod that waits for a missing driver is requeued immediately when the driver registers', async () => {
    const environment = new CsiWorld();
    environment.isThere = false;
    const volumes = environment.volumes();
    await assert.rejects(volumes.setUp(podWith([]), disk, signal), /driver name d\.example not found/);
    assert.equal(volumes.size, 1);
    environment.isThere = true;
    volumes.driverRegistered(driver);
    assert.deepEqual(environment.looked, [worldUid]);
    await volumes.setUp(podWith([]), disk, signal);
  });

  it('a rejected CSI volume leaves no files and is retried with back-off', async () => {
    const environment = new CsiWorld();
    environment.troubles.set('stage', refusal());
    const volumes = environment.volumes();
    const fails = () =>
      assert.rejects(volumes.setUp(podWith([]), disk, signal), /MountDevice failed .* desc = no/);
    await fails();
    assert.deepEqual(left(environment), []);
    await fails();
    assert.deepEqual(environment.calls(), ['stage']);
    await environment.clock.advance(600);
    await fails();
    assert.deepEqual(environment.calls(), ['stage', 'stage']);
    environment.troubles.clear();
    await environment.clock.advance(1_100);
    await volumes.setUp(podWith([]), disk, signal);
  });

  it('a CSI volume is unpublished when the pod terminates, even if the outcome of the publish call is unknown', async () => {
    const environment = new CsiWorld();
    environment.troubles.set('publish', silence());
    const volumes = environment.volumes();
    await assert.rejects(volumes.setUp(podWith([]), disk, signal), /Unavailable/);
    assert.equal(left(environment).length > 0, true);
    await environment.ends(volumes, worldUid);
    assert.deepEqual(environment.calls(), ['stage', 'publish', 'unpublish', 'unstage']);
    assert.deepEqual(left(environment), []);
  });

  it('a CSI volume of a killed kubelet stays mounted while the driver is not registered, and is unstaged afterwards', async () => {
    const environment = new CsiWorld();
    await environment.volumes().setUp(podWith([]), disk, signal);
    environment.isThere = false;
    const later = environment.volumes();
    await later.setUp(podWith([]), disk, signal);
    await assert.rejects(later.remove(worldUid, signal), { code: 'VOLUME_REMOVE', message: /d\.example/ });
    environment.isThere = true;
    await environment.ends(later, worldUid);
    assert.deepEqual(environment.calls(), ['stage', 'publish', 'unpublish', 'unstage']);
  });

  it('a CSI volume stays mounted while the API server is unavailable and its Secret cannot be read', async () => {
    const environment = new CsiWorld();
    const named = { ...disk, stageSecret: { namespace: 'ns', name: 's' } };
    environment.secret = { data: {} };
    await environment.volumes().setUp(podWith([]), named, signal);
    environment.secret = new KubelingError('API_UNAVAILABLE', 'away');
    await environment.volumes().setUp(podWith([]), named, signal);
    assert.deepEqual(environment.calls(), ['stage', 'publish']);
    environment.secret = undefined;
    await assert.rejects(environment.volumes().setUp(podWith([]), named, signal), /secrets "s" not found/);
  });

  it('a CSI volume does not count as mounted when a previous kubelet got no response to the publish call', async () => {
    const environment = new CsiWorld();
    const volumes = environment.volumes();
    const { publish } = environment.client;
    environment.client.publish = async (request, inner) => {
      await publish(request, inner);
      throw silence();
    };
    await assert.rejects(volumes.setUp(podWith([]), disk, signal), /Unavailable/);
    environment.isThere = false;
    await assert.rejects(environment.volumes().setUp(podWith([]), disk, signal), { code: 'VOLUME_UNUSABLE' });
  });

  it('a sweep unstages CSI volumes only if no pod uses them', async () => {
    const environment = new CsiWorld();
    environment.troubles.set('publish', refusal());
    await assert.rejects(environment.volumes().setUp(podWith([]), disk, signal));
    const later = environment.volumes();
    environment.noted = ['disk'];
    await environment.runs(later, 70_000);
    assert.deepEqual(environment.calls(), ['stage', 'publish']);
    environment.noted = [];
    await environment.runs(later, 70_000);
    assert.deepEqual(environment.calls().slice(2), ['unstage']);
    assert.deepEqual(left(environment), []);
  });

  it('a failing unstage call does not block the pod, and is retried', async () => {
    const environment = new CsiWorld();
    const volumes = environment.volumes();
    await volumes.setUp(podWith([]), disk, signal);
    environment.troubles.set('unstage', refusal());
    await environment.ends(volumes, worldUid);
    await environment.runs(volumes, 130_000);
    assert.equal(environment.logs.records.toArray().length, 1);
    environment.troubles.clear();
    await environment.runs(volumes, 70_000);
    assert.deepEqual(left(environment), []);
  });

  it('a CSI volume directory is never removed with content or while it is mounted', async () => {
    const environment = new CsiWorld();
    const volumes = environment.volumes();
    await volumes.setUp(podWith([]), disk, signal);
    const mount = volumes.mountPathOf(worldUid, 'pv');
    // The fake driver reports success without unmounting the volume.
    environment.client.unpublish = async () => {};
    await assert.rejects(volumes.remove(worldUid, signal), /is still mounted, by the CSI driver d\.example/);
    await environment.files.unmount(mount);
    await environment.files.writeFile(`${mount}/precious`, Buffer.from('x'), { mode: 0o600 });
    await assert.rejects(volumes.remove(worldUid, signal), /has content/);
    assert.equal(environment.files.text(`${mount}/precious`), 'x');
  });

  it('waits for the attachment of a CSI volume and passes its publish context to the driver', async () => {
    const environment = new CsiWorld();
    environment.driver = undefined;
    environment.isListed = false;
    const volumes = environment.volumes();
    await environment.runs(volumes);
    const fails = (why: RegExp) => assert.rejects(volumes.setUp(podWith([]), disk, signal), why);
    await fails(/WaitForAttach failed for volume "pv" : Volume not attached according to node status/);
    assert.deepEqual(volumes.inUse(), ['kubernetes.io/csi/d.example^disk']);
    environment.isListed = true;
    await fails(/volumeattachments\.storage\.k8s\.io "csi-[0-9a-f]{64}" not found/);
    const spec = { attacher: driver, nodeName: 'n1', source: {} };
    environment.attachment = { spec, status: { attached: false, attachError: { message: 'no room' } } };
    await fails(/no room/);
    environment.attachment = { spec, status: { attached: true, attachmentMetadata: { device: 'sda' } } };
    await volumes.setUp(podWith([]), disk, signal);
    assert.deepEqual(environment.requests[0]?.publishContext, { device: 'sda' });
    await environment.ends(volumes, worldUid);
    assert.deepEqual(volumes.inUse(), []);
  });

  it('rejects the pod after the attach limit has been reached for two minutes, if the driver updates its limits', async () => {
    const environment = new CsiWorld();
    const spec = { attacher: driver, nodeName: 'n1', source: {} };
    const attachError = { message: 'full', errorCode: 8 };
    environment.attachment = { spec, status: { attached: false, attachError } };
    const volumes = environment.volumes();
    const codeAfter = async (ms: number) => {
      await environment.clock.advance(ms);
      return await volumes.setUp(podWith([]), disk, signal).then(
        () => 'done',
        ({ code, message }) => `${code} ${message}`,
      );
    };
    const why = 'MountVolume.WaitForAttach failed for volume "pv" : full';
    environment.driver = { spec: {} };
    assert.equal(await codeAfter(200_000), `VOLUME_UNUSABLE ${why}`);
    environment.driver = { spec: { nodeAllocatableUpdatePeriodSeconds: 10 } };
    assert.equal(await codeAfter(0), `VOLUME_UNUSABLE ${why}`);
    assert.equal(await codeAfter(122_999), `VOLUME_UNUSABLE ${why}`);
    assert.deepEqual(environment.history, []);
    assert.equal(await codeAfter(1), `VOLUME_ATTACH_LIMIT ${why}`);
    assert.deepEqual(environment.history, [`limit ${driver}`]);
    await environment.ends(volumes, worldUid);
    assert.equal(await codeAfter(0), `VOLUME_UNUSABLE ${why}`);
  });

  it('a CSI volume stays in use only while the pod that waits for it exists', async () => {
    const environment = new CsiWorld();
    environment.driver = undefined;
    environment.isListed = false;
    const volumes = environment.volumes();
    await assert.rejects(volumes.setUp(podWith([]), disk, signal), /not attached/);
    await environment.runs(volumes);
    assert.deepEqual(volumes.inUse(), ['kubernetes.io/csi/d.example^disk']);
    await environment.ends(volumes, worldUid);
    assert.deepEqual(volumes.inUse(), []);
  });

  it('CSI volumes of a previous kubelet are in use from the start', async () => {
    const environment = new CsiWorld();
    await environment.volumes().setUp(podWith([]), disk, signal);
    const later = environment.volumes();
    assert.equal(later.inUse(), undefined);
    await environment.runs(later);
    assert.deepEqual(later.inUse(), ['kubernetes.io/csi/d.example^disk']);
  });

  it('CSI block volumes of a previous kubelet are in use from the start', async () => {
    const environment = new CsiWorld();
    environment.driver = undefined;
    environment.isListed = false;
    const show = async () => {};
    await assert.rejects(
      environment.volumes().devices.setUp(podWith([]), disk, show, signal),
      /not attached/,
    );
    const later = environment.volumes();
    await environment.runs(later);
    assert.deepEqual(later.inUse(), ['kubernetes.io/csi/d.example^disk']);
    assert.deepEqual(environment.reconstructed, ['reconstructed success']);
    await later.devices.remove(worldUid, signal);
    assert.deepEqual(later.inUse(), []);
  });

  it('an inline CSI volume requires a driver with the Ephemeral mode', async () => {
    const environment = new CsiWorld();
    const volumes = environment.volumes();
    const fails = (why: RegExp) => assert.rejects(volumes.setUpInline(csiPod, inlineVolume(), signal), why);
    await fails(
      /volume mode "Ephemeral" not supported by driver d\.example \(only supports \["Persistent"\]\)/,
    );
    environment.driver = undefined;
    volumes.driverRegistered(driver);
    await fails(/\(no CSIDriver object\)/);
    assert.deepEqual(left(environment), []);
  });

  it('the publish request of an inline CSI volume contains the pod info and tokens that the driver requires', async () => {
    const environment = new CsiWorld();
    environment.driver = {
      spec: { volumeLifecycleModes: ['Ephemeral'], podInfoOnMount: true, tokenRequests: [{ audience: 'x' }] },
    };
    environment.secret = { data: { key: Buffer.from('open').toString('base64') } };
    const volumes = environment.volumes();
    const volume = inlineVolume({ readOnly: true, nodePublishSecretRef: { name: 's' } });
    await volumes.setUpInline(csiPod, volume, signal);
    const [request] = environment.requests as unknown as readonly [NodePublishVolumeRequest];
    assert.equal(request.volumeId, inlineHandle(worldUid, 'v'));
    assert.equal(request.readonly, true);
    assert.deepEqual(request.secrets, { key: 'open' });
    assert.equal(request.volumeContext['csi.storage.k8s.io/pod.uid'], worldUid);
    assert.equal(
      request.volumeContext['csi.storage.k8s.io/serviceAccount.tokens'],
      '{"x":{"token":"t-x","expirationTimestamp":"1970-01-01T00:00:00Z"}}',
    );
    await environment.ends(volumes, worldUid);
    assert.deepEqual(environment.calls(), ['publish', 'unpublish']);
  });

  it('a CSI volume that needs attachment is rejected when controller attach is disabled', async () => {
    const environment = new CsiWorld();
    environment.driver = undefined;
    const volumes = environment.volumes({ attaching: 'node' });
    await environment.runs(volumes);
    const refused = await volumes.setUp(podWith([]), disk, signal).catch((error: unknown) => error);
    const problem = problemOf('v', refused);
    assert.equal(problem.kind === 'unmounted' && problem.reason, 'FailedAttachVolume');
    assert.equal(
      problem.message,
      'AttachVolume.Attach failed for volume "pv" : attaching volumes from the kubelet is not supported',
    );
    assert.deepEqual([environment.calls(), volumes.inUse()], [[], []]);
    await environment.clock.advance(1_000);
    environment.driver = { spec: { attachRequired: false } };
    await volumes.setUp(podWith([]), disk, signal);
    assert.deepEqual(environment.calls(), ['stage', 'publish']);
  });

  it('a CSI volume is republished to a running pod when the driver requires it, and stays mounted if that fails', async () => {
    const environment = new CsiWorld();
    const volumes = environment.volumes();
    await volumes.setUp(podWith([]), disk, signal);
    const keepUp = async (ms = 0) => {
      volumes.maintain(podWith([]), disk);
      await environment.runs(volumes, ms);
    };
    await keepUp();
    assert.deepEqual(environment.calls(), ['stage', 'publish']);
    environment.driver = { spec: { attachRequired: false, requiresRepublish: true } };
    await keepUp();
    assert.deepEqual(environment.calls(), ['stage', 'publish', 'publish']);
    environment.troubles.set('publish', refusal());
    await keepUp(600);
    assert.deepEqual(environment.calls().slice(3), ['publish', 'publish']);
    const reported =
      'pod FailedMount MountVolume.SetUp failed for volume "pv" : rpc error: code = Internal desc = no';
    assert.deepEqual(environment.events, [reported, reported]);
    assert.equal(await environment.files.mountAt(volumes.mountPathOf(worldUid, 'pv')), 'other');
    assert.equal(left(environment).length, 4);
  });

  it('a driver call is cancelled when the pod terminates', async () => {
    const environment = new CsiWorld();
    const volumes = environment.volumes();
    await volumes.setUp(podWith([]), disk, signal);
    environment.driver = { spec: { attachRequired: false, requiresRepublish: true } };
    environment.client.publish = (_request, inner) =>
      new Promise((_resolve, reject) => inner.addEventListener('abort', () => reject(inner.reason)));
    const end = new AbortController();
    const running = volumes.run(end.signal).catch(() => {});
    volumes.maintain(podWith([]), disk);
    await environment.clock.advance(0);
    await environment.ends(volumes, worldUid);
    assert.deepEqual(environment.calls(), ['stage', 'publish', 'unpublish', 'unstage']);
    end.abort(new Error('over'));
    await running;
  });

  it("a CSI volume gets the fsGroup of the pod according to the driver's fsGroupPolicy", async () => {
    const pod = podWith([], { securityContext: { fsGroup: 77 } });
    const groupOf = async (policy: string | undefined, volume: CsiVolume, can: NodeCapability[] = []) => {
      const environment = new CsiWorld();
      for (const one of can) environment.can.add(one);
      environment.driver = { spec: { attachRequired: false, fsGroupPolicy: policy } };
      const volumes = environment.volumes();
      await volumes.setUp(pod, volume, signal);
      const requested = environment.requests[0]?.volumeCapability?.mount?.volumeMountGroup;
      return [(await environment.files.ownerOf(volumes.mountPathOf(worldUid, 'pv'))).group, requested];
    };
    assert.deepEqual(await groupOf(undefined, disk), [77, '']);
    assert.deepEqual(await groupOf(undefined, { ...disk, fsType: '' }), [0, '']);
    assert.deepEqual(await groupOf(undefined, { ...disk, accessMode: 'ReadWriteMany' }), [0, '']);
    assert.deepEqual(await groupOf('File', { ...disk, fsType: '' }), [77, '']);
    assert.deepEqual(await groupOf('None', disk), [0, '']);
    assert.deepEqual(await groupOf('File', { ...disk, readOnly: true }), [0, '']);
    assert.deepEqual(await groupOf('File', disk, ['VOLUME_MOUNT_GROUP']), [0, '77']);
  });

  it('a CSI volume with a damaged data file is removed only if it is not mounted', async () => {
    const environment = new CsiWorld();
    const volumes = environment.volumes();
    await volumes.setUp(podWith([]), disk, signal);
    const mount = volumes.mountPathOf(worldUid, 'pv');
    await environment.files.replaceFile(
      mount.replace(/mount$/, 'vol_data.json'),
      Buffer.from('{"dri'),
      0o644,
    );
    await assert.rejects(volumes.remove(worldUid, signal), /is still mounted, and nothing says by which/);
    await environment.files.unmount(mount);
    await environment.ends(volumes, worldUid);
  });
});
