import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { CsiWorld, disk, driver } from '../../../test/fakes/csi-world.ts';
import { podWith, worldUid } from '../../../test/fakes/payload-world.ts';
import { MetricRegistry } from '../../lib/index.ts';
import { reconstructionMetrics } from '../manager/volume-metrics.ts';
import type { CsiVolumes } from './csi-volumes.ts';

const { signal } = new AbortController();
const unique = 'kubernetes.io/csi/d.example^disk';
const fileOf = (volumes: CsiVolumes, name: string) =>
  volumes.mountPathOf(worldUid, name).replace(/mount$/, 'vol_data.json');
const cut = (world: CsiWorld, path: string) => world.files.replaceFile(path, Buffer.from('{"dri'), 0o644);

/** A pod whose volume was published by a previous kubelet. */
async function mounted(world = new CsiWorld()): Promise<CsiVolumes> {
  await world.volumes().setUp(podWith([]), disk, signal);
  return world.volumes();
}

describe('CSI volumes of a previous kubelet', () => {
  it('are unstaged and in use until then, after a kill between unpublish and unstage', async () => {
    const world = new CsiWorld();
    world.driver = undefined;
    const spec = { attacher: driver, nodeName: 'n1', source: {} };
    world.attachment = { spec, status: { attached: true } };
    const earlier = await mounted(world);
    // Ends before the first sweep.
    await earlier.remove(worldUid, signal);
    assert.deepEqual(world.calls(), ['stage', 'publish', 'unpublish']);
    const later = world.volumes();
    world.isThere = false;
    await world.runs(later, 70_000);
    assert.deepEqual(later.inUse(), [unique]);
    world.isThere = true;
    later.driverRegistered(driver);
    await world.runs(later);
    assert.deepEqual(world.calls().slice(3), ['unstage']);
    assert.deepEqual(later.inUse(), []);
  });

  it('block neither a pod nor other volumes when the driver does not unstage', async () => {
    const world = new CsiWorld();
    const volumes = world.volumes();
    const other = { ...disk, name: 'pv2', handle: 'other' };
    await volumes.setUp(podWith([]), disk, signal);
    await volumes.setUp(podWith([]), other, signal);
    const { unstage } = world.client;
    world.client.unstage = (id, path, inner) =>
      id === 'disk'
        ? new Promise((_done, fail) => inner.addEventListener('abort', fail))
        : unstage(id, path, inner);
    await world.ends(volumes, worldUid);
    assert.deepEqual(world.calls().slice(4), ['unpublish', 'unpublish', 'unstage']);
  });

  it('are unpublished with the recorded volume if vol_data.json is truncated', async () => {
    const world = new CsiWorld();
    const volumes = await mounted(world);
    await cut(world, fileOf(volumes, 'pv'));
    world.notedVolumes.set(`${worldUid}/pv`, { driver, handle: 'disk' });
    await world.ends(volumes, worldUid);
    assert.deepEqual(world.calls(), ['stage', 'publish', 'unpublish', 'unstage']);
  });

  it('are unpublished with the pod spec if vol_data.json is truncated', async () => {
    const world = new CsiWorld();
    world.driver = { spec: { volumeLifecycleModes: ['Ephemeral'] } };
    const described = { name: 'v', csi: { driver } };
    await world.volumes().setUpInline(podWith([described]), described, signal);
    const volumes = world.volumes();
    await cut(world, fileOf(volumes, 'v'));
    await assert.rejects(volumes.remove(worldUid, signal), /still mounted, and nothing says by which driver/);
    await volumes.remove(worldUid, signal, [described]);
    assert.deepEqual(world.calls(), ['publish', 'unpublish']);
    assert.deepEqual(world.reconstructed, ['force-cleaned failure']);
  });

  it('are removed without their driver only after a reboot', async () => {
    const world = new CsiWorld();
    const volumes = await mounted(world);
    world.isThere = false;
    await assert.rejects(volumes.remove(worldUid, signal), /cannot be unpublished/);
    await world.files.unmount(volumes.mountPathOf(worldUid, 'pv'));
    await assert.rejects(volumes.remove(worldUid, signal), /cannot be unpublished/);
    world.boot = '';
    await assert.rejects(volumes.remove(worldUid, signal), /cannot be unpublished/);
    world.boot = 'boot-2';
    await volumes.remove(worldUid, signal);
    assert.equal(world.files.text(fileOf(volumes, 'pv')), undefined);
  });

  it('are removed without their driver if another kubelet left only the data file', async () => {
    const world = new CsiWorld();
    const volumes = await mounted(world);
    const {
      bootID: _boot,
      publishedBy: _by,
      ...theirs
    } = JSON.parse(world.files.text(fileOf(volumes, 'pv')) ?? '');
    await world.files.replaceFile(fileOf(volumes, 'pv'), Buffer.from(JSON.stringify(theirs)), 0o644);
    world.isThere = false;
    await world.files.unmount(volumes.mountPathOf(worldUid, 'pv'));
    // A directory that still exists may be a mount point.
    await assert.rejects(volumes.remove(worldUid, signal), /cannot be unpublished/);
    await world.files.removeEmptyDirectory(volumes.mountPathOf(worldUid, 'pv'));
    await volumes.remove(worldUid, signal);
    assert.equal(world.files.text(fileOf(volumes, 'pv')), undefined);
  });

  it('are counted once in the reconstruction metrics, also if damaged', async () => {
    const world = new CsiWorld();
    const volumes = await mounted(world);
    await cut(world, fileOf(volumes, 'pv'));
    await world.runs(volumes);
    await world.runs(volumes);
    assert.deepEqual(world.reconstructed, ['reconstructed failure', 'reconstructed success']);
    const registry = new MetricRegistry({ onError: (error) => assert.fail(String(error)) });
    const observe = reconstructionMetrics(registry);
    observe('reconstructed', 'success');
    observe('reconstructed', 'failure');
    observe('force-cleaned', 'success');
    const lines = (await registry.expose(signal)).split('\n').filter((line) => /^[rf]/.test(line));
    assert.deepEqual(lines.toSorted(), [
      'force_cleaned_failed_volume_operation_errors_total 0',
      'force_cleaned_failed_volume_operations_total 1',
      'reconstruct_volume_operations_errors_total 1',
      'reconstruct_volume_operations_total 2',
    ]);
  });

  const stagedFile = (world: CsiWorld) =>
    world.files.paths().find((path) => /^\/root\/plugins\/.*vol_data\.json$/.test(path)) ?? '';
  /** A volume staged by a previous kubelet for a pod that was deleted. */
  async function staged(): Promise<CsiWorld> {
    const world = new CsiWorld();
    await (await mounted(world)).remove(worldUid, signal);
    world.history.length = 0;
    return world;
  }

  it('is unstaged with a truncated data file if node status, record or pod has the handle', async () => {
    for (const how of ['listed', 'noted', 'pod'] as const) {
      const world = await staged();
      await cut(world, stagedFile(world));
      const later = world.volumes();
      if (how === 'listed') world.listed = ['kubernetes.io/csi/other^x', unique];
      if (how === 'noted') world.noted = ['disk'];
      if (how === 'pod') {
        await world.files.makeDirectory('/root/pods/p/volumes/kubernetes.io~csi/pv', 0o750);
        const text = JSON.stringify({ driverName: driver, volumeHandle: 'disk' });
        const file = '/root/pods/p/volumes/kubernetes.io~csi/pv/vol_data.json';
        await world.files.replaceFile(file, Buffer.from(text), 0o644);
      }
      await world.runs(later, 70_000);
      // A volume that is recorded for a pod or used by one stays staged.
      assert.deepEqual(world.calls(), how === 'listed' ? ['unstage'] : [], how);
      assert.equal(stagedFile(world) === '', how === 'listed', how);
      assert.equal(world.logs.records.toArray().length, 0);
    }
  });

  it('stays mounted if its handle is unknown, and is reported once', async () => {
    const world = await staged();
    const file = stagedFile(world);
    await cut(world, file);
    const later = world.volumes();
    await world.runs(later, 200_000);
    const mount = file.replace('vol_data.json', 'globalmount');
    const because = `${file} is missing or damaged, so that nobody knows the handle: ${mount} is still mounted, by the CSI driver d.example`;
    assert.deepEqual(
      world.logs.records.toArray().map(({ fields }) => fields['because']),
      [because],
    );
    assert.deepEqual([world.calls(), stagedFile(world)], [[], file]);
    await world.files.unmount(mount);
    await world.runs(later, 70_000);
    assert.equal(stagedFile(world), '');
    assert.deepEqual(world.reconstructed.slice(1), ['force-cleaned failure', 'force-cleaned success']);
  });

  it('is removed if it was never recorded as staged, unless a pod is about to stage it', async () => {
    const world = new CsiWorld();
    await world.files.makeDirectory('/root/plugins/kubernetes.io/csi/d.example/0123/globalmount', 0o750);
    await world.runs(world.volumes(), 70_000);
    assert.deepEqual(await world.files.names('/root/plugins/kubernetes.io/csi/d.example'), []);
  });

  it('stays staged while a pod still has it mounted without a data file', async () => {
    const world = await staged();
    const other = '/root/pods/p/volumes/kubernetes.io~csi/pv/mount';
    const file = other.replace(/mount$/, 'vol_data.json');
    await world.files.makeDirectory(other, 0o750);
    await cut(world, file);
    const later = world.volumes({ otherMounts: async () => ['/elsewhere', other] });
    await world.runs(later, 200_000);
    const mount = stagedFile(world).replace('vol_data.json', 'globalmount');
    assert.deepEqual(
      [world.calls(), world.logs.records.toArray().map(({ fields }) => fields['because'])],
      [[], [`the device mount path "${mount}" is still mounted by other references [${other}]`]],
    );
    const text = JSON.stringify({ driverName: driver, volumeHandle: 'another' });
    await world.files.replaceFile(file, Buffer.from(text), 0o644);
    await world.runs(later, 70_000);
    assert.deepEqual(world.calls(), ['unstage']);
  });
});
