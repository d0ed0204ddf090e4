import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { CsiWorld, disk, otherUid } from '../../../test/fakes/csi-world.ts';
import { podWith, worldUid } from '../../../test/fakes/payload-world.ts';
import type { SELinuxOptions } from '../../kinds/index.ts';
import { type Pod, type PodUid, podUid } from '../../pods/index.ts';
import type { CsiVolumesDeps } from './csi-volumes.ts';
import type { NodePublishVolumeRequest, NodeStageVolumeRequest } from './gen/node.ts';

const { signal } = new AbortController();
const selinux = { fileContext: 'system_u:object_r:container_file_t:s0' };
const volume = { ...disk, claim: 'c', use: 'one-pod' as const };
const label = (level: string) => `system_u:object_r:container_file_t:${level}`;

/** Creates a pod with an SELinux label for each container, or one for the pod. */
function pod(
  containers: readonly (SELinuxOptions | undefined)[],
  whole: object = {},
  uid: PodUid = worldUid,
): Pod {
  const created = podWith([{ name: 'v', persistentVolumeClaim: { claimName: 'c' } }], {
    securityContext: whole,
  });
  const each = containers.map((seLinuxOptions, index) => ({
    name: `c${index}`,
    image: 'i',
    volumeMounts: [{ name: 'v', mountPath: '/v' }],
    ...(seLinuxOptions === undefined ? {} : { securityContext: { seLinuxOptions } }),
  }));
  return { ...created, metadata: { ...created.metadata, uid }, spec: { ...created.spec, containers: each } };
}

function labelling(): CsiWorld {
  const environment = new CsiWorld();
  environment.driver = { spec: { attachRequired: false, seLinuxMount: true } };
  return environment;
}

describe('ReadWriteOncePod volumes of a driver with seLinuxMount on a machine with SELinux', () => {
  for (const [field, options] of [
    ['level', { level: 's0",suid,dev,x="' }],
    ['level', { level: 's0\nsuid' }],
    ['user', { level: 's0', user: 'u",bind' }],
  ] as const)
    it(`rejects the SELinux label ${JSON.stringify(options)}, which would add mount options`, async () => {
      const environment = labelling();
      const refused = environment.volumes({ selinux }).setUp(pod([options]), volume, signal);
      await assert.rejects(
        refused,
        new RegExp(`invalid seLinuxOptions\\.${field}: must be part of an SELinux label`),
      );
      assert.deepEqual(environment.requests, []);
    });

  it('mounts a volume with the SELinux label of the containers, and records it on disk', async () => {
    const environment = labelling();
    const volumes = environment.volumes({ selinux });
    await volumes.setUp(pod([{ level: 's0:c1,c2' }, { level: 's0:c1,c2', type: 't' }]), volume, signal);
    const [stage, publish] = environment.requests as unknown as readonly [
      NodeStageVolumeRequest,
      NodePublishVolumeRequest,
    ];
    const flags = ['noatime', `context="${label('s0:c1,c2')}"`];
    assert.deepEqual(stage.volumeCapability?.mount?.mountFlags, flags);
    assert.deepEqual(publish.volumeCapability?.mount?.mountFlags, flags);
    assert.equal(volumes.contextOf(worldUid, 'pv'), label('s0:c1,c2'));
    for (const path of environment.files.paths().filter((each) => each.endsWith('vol_data.json')))
      assert.equal(JSON.parse(environment.files.text(path) ?? '').seLinuxMountContext, label('s0:c1,c2'));
    // After a restart the context is read from the data file, although the driver is not
    // registered.
    environment.isThere = false;
    const later = environment.volumes({ selinux });
    await later.setUp(pod([{ level: 's0:c1,c2' }]), volume, signal);
    assert.equal(later.contextOf(worldUid, 'pv'), label('s0:c1,c2'));
  });

  it('mounts a volume without a context when the runtime relabels the files', async () => {
    const contextOf = async (
      made: Pod,
      {
        world = labelling(),
        machine = { selinux } as Pick<CsiVolumesDeps, 'selinux'>,
        given = volume as typeof disk,
      } = {},
    ) => {
      const volumes = world.volumes(machine);
      await volumes.setUp(made, given, signal);
      assert.deepEqual(world.requests[0]?.volumeCapability?.mount?.mountFlags, ['noatime']);
      return volumes.contextOf(worldUid, 'pv');
    };
    const labelled = pod([{ level: 's0:c1' }]);
    assert.equal(await contextOf(labelled, { machine: {} }), undefined);
    assert.equal(await contextOf(labelled, { world: new CsiWorld() }), undefined);
    assert.equal(await contextOf(labelled, { given: { ...volume, use: 'any' } }), undefined);
    assert.equal(await contextOf(pod([{ level: 's0:c1' }], { seLinuxChangePolicy: 'Recursive' })), undefined);
    assert.equal(await contextOf(pod([undefined])), undefined);
    assert.equal(await contextOf(pod([{ type: 't' }])), undefined);
  });

  it('rejects a volume that containers of a pod with two different labels use', async () => {
    const two = pod([{ level: 's0:c1' }, undefined], { seLinuxOptions: { level: 's0:c2', user: 'u' } });
    await assert.rejects(
      labelling().volumes({ selinux }).setUp(two, volume, signal),
      /MountDevice failed .* multiple SELinux labels found: system_u:object_r:container_file_t:s0:c1, u:object_r:container_file_t:s0:c2/,
    );
  });

  it('unstages a volume before mounting it with another label, but not while another pod uses it', async () => {
    const environment = labelling();
    const volumes = environment.volumes({ selinux });
    await volumes.setUp(pod([{ level: 's0:c1' }]), volume, signal);
    const other = pod([{ level: 's0:c2' }], {}, otherUid);
    const conflict = `conflicting SELinux labels of volume pv: "${label('s0:c1')}" and "${label('s0:c2')}"`;
    await assert.rejects(volumes.setUp(other, volume, signal), (error: Error) =>
      error.message.includes(conflict),
    );
    await environment.ends(volumes, worldUid);
    await environment.clock.advance(1_000);
    await volumes.setUp(other, volume, signal);
    assert.deepEqual(environment.calls(), ['stage', 'publish', 'unpublish', 'unstage', 'stage', 'publish']);
    assert.equal(volumes.contextOf(otherUid, 'pv'), label('s0:c2'));
    assert.equal(volumes.contextOf(worldUid, 'pv'), undefined);
  });

  it('mounts volumes of any access mode with one label for all pods when SELinuxMount is enabled', async () => {
    for (const stages of [true, false]) {
      const environment = labelling();
      if (!stages) environment.can.clear();
      const shared = { ...volume, use: 'any' as const, accessMode: 'ReadWriteMany' };
      const plain = environment.volumes({ selinux });
      await plain.setUp(pod([{ level: 's0:c1,c2' }]), shared, signal);
      assert.equal(plain.contextOf(worldUid, 'pv'), undefined);
      await environment.ends(plain, worldUid);
      const volumes = environment.volumes({ selinux: { ...selinux, labelled: 'all' } });
      await volumes.setUp(pod([{ level: 's0:c1,c2' }]), shared, signal);
      assert.equal(volumes.contextOf(worldUid, 'pv'), label('s0:c1,c2'));
      await assert.rejects(volumes.setUp(pod([{ level: 's0:c3' }], {}, otherUid), shared, signal), {
        message: `MountVolume.MountDevice failed for volume "pv" : conflicting SELinux labels of volume pv: "${label('s0:c1,c2')}" and "${label('s0:c3')}"`,
      });
      const third = podUid('third');
      await volumes.setUp(pod([{ level: 's0:c1,c2' }], {}, third), shared, signal);
      // A new label can be used only after all pods with the old label are removed.
      for (const uid of [worldUid, third, otherUid]) await environment.ends(volumes, uid);
      await environment.clock.advance(10_000);
      await volumes.setUp(pod([{ level: 's0:c3' }], {}, otherUid), shared, signal);
      assert.equal(volumes.contextOf(otherUid, 'pv'), label('s0:c3'));
    }
  });
});
