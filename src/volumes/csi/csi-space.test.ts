import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CsiWorld, disk, refusal } from '../../../test/fakes/csi-world.ts';
import { podWith, worldUid } from '../../../test/fakes/payload-world.ts';

const { signal } = new AbortController();

test('reports the capacity and the health that the CSI driver returns', async () => {
  const environment = new CsiWorld();
  const volumes = environment.volumes();
  await volumes.setUp(podWith([]), disk, signal);
  const space = async () => await volumes.spaceAt(volumes.mountPathOf(worldUid, 'pv'), signal);
  assert.deepEqual(await space(), {});
  environment.can.add('GET_VOLUME_STATS');
  environment.stats = {
    usage: [{ unit: 'BYTES', total: 10n, used: 4n, available: 5n }],
    volumeCondition: { abnormal: true, message: 'cracked' },
  };
  assert.deepEqual(await space(), { capacityBytes: 10, availableBytes: 5, usedBytes: 4 });
  environment.can.add('VOLUME_CONDITION');
  environment.stats = {
    usage: [{ unit: 'INODES', total: 3n, used: 1n, available: 2n }],
    volumeCondition: { abnormal: true, message: 'cracked' },
  };
  assert.deepEqual(await space(), { inodes: 3, inodesFree: 2, inodesUsed: 1, health: 'abnormal' });
});

test('rejects when the CSI driver fails, and returns empty stats without waiting when it is not registered', async () => {
  const environment = new CsiWorld();
  environment.can.add('GET_VOLUME_STATS');
  const volumes = environment.volumes();
  await volumes.setUp(podWith([]), disk, signal);
  const at = volumes.mountPathOf(worldUid, 'pv');
  environment.troubles.set('stats', refusal());
  await assert.rejects(async () => await volumes.spaceAt(at, signal), { code: 'CSI_REFUSED' });
  environment.isThere = false;
  assert.deepEqual(await volumes.spaceAt(at, signal), {});
});

test('passes the publish path of a block volume to NodeGetVolumeStats', async () => {
  const environment = new CsiWorld();
  environment.can.add('GET_VOLUME_STATS');
  environment.stats = {
    usage: [{ unit: 'BYTES', total: 10n, used: 0n, available: 0n }],
    volumeCondition: undefined,
  };
  const volumes = environment.volumes();
  const link = `/root/pods/${worldUid}/volumeDevices/kubernetes.io~csi/pv`;
  assert.deepEqual(await volumes.spaceAt(link, signal), {}, 'nobody knows of it');
  await volumes.devices.setUp(podWith([]), { ...disk, shownAs: 'device' }, async () => {}, signal);
  assert.equal((await volumes.spaceAt(link, signal))?.capacityBytes, 10);
  assert.equal(
    environment.history.at(-1),
    `stats /root/plugins/kubernetes.io/csi/volumeDevices/publish/pv/${worldUid}`,
  );
});

test('queries a CSI driver only for volumes of that driver', () => {
  const volumes = new CsiWorld().volumes();
  assert.equal(
    volumes.spaceAt(`/root/pods/${worldUid}/volumes/kubernetes.io~local-volume/pv`, signal),
    undefined,
  );
  assert.equal(volumes.spaceAt('/elsewhere', signal), undefined);
});
