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
const cut = (environment: CsiWorld, path: string) =>
  environment.files.replaceFile(path, Buffer.from('{"dri'), 0o644);

/** Creates a pod whose volume was published by a previous kubelet. */
async function mounted(environment = new CsiWorld()): Promise<CsiVolumes> {
  await environment.volumes().setUp(podWith([]), disk, signal);
  return environment.volumes();
}

describe('CSI volumes of a previous kubelet', () => {
  it('a volume whose kubelet was killed between unpublish and unstage is unstaged, and in use until then', async () => {
    const environment = new CsiWorld();
    environment.driver = undefined;
    const spec = { attacher: driver, nodeName: 'n1', source: {} };
    environment.attachment = { spec, status: { attached: true } };
    const earlier = await mounted(environment);
    // The first kubelet process stops before its first sweep.
    await earlier.remove(worldUid, signal);
    assert.deepEqual(environment.calls(), ['stage', 'publish', 'unpublish']);
    const later = environment.volumes();
    environment.isThere = false;
    await environment.runs(later, 70_000);
    assert.deepEqual(later.inUse(), [unique]);
    environment.isThere = true;
    later.driverRegistered(driver);
    await environment.runs(later);
    assert.deepEqual(environment.calls().slice(3), ['unstage']);
    assert.deepEqual(later.inUse(), []);
  });

  it('an unresponsive unstage call blocks neither the pod nor other volumes', async () => {
    const environment = new CsiWorld();
    const volumes = environment.volumes();
    const other = { ...disk, name: 'pv2', handle: 'other' };
    await volumes.setUp(podWith([]), disk, signal);
    await volumes.setUp(podWith([]), other, signal);
    const { unstage } = environment.client;
    environment.client.unstage = (id, path, inner) =>
      id === 'disk'
        ? new Promise((_done, fail) => inner.addEventListener('abort', fail))
        : unstage(id, path, inner);
    await environment.ends(volumes, worldUid);
    assert.deepEqual(environment.calls().slice(4), ['unpublish', 'unpublish', 'unstage']);
  });

  it('a volume is unpublished using its recorded data when vol_data.json is truncated', async () => {
    const environment = new CsiWorld();
    const volumes = await mounted(environment);
    await cut(environment, fileOf(volumes, 'pv'));
    environment.notedVolumes.set(`${worldUid}/pv`, { driver, handle: 'disk' });
    await environment.ends(volumes, worldUid);
    assert.deepEqual(environment.calls(), ['stage', 'publish', 'unpublish', 'unstage']);
  });

  it('an inline volume is unpublished using the pod spec when vol_data.json is truncated', async () => {
    const environment = new CsiWorld();
    environment.driver = { spec: { volumeLifecycleModes: ['Ephemeral'] } };
    const described = { name: 'v', csi: { driver } };
    await environment.volumes().setUpInline(podWith([described]), described, signal);
    const volumes = environment.volumes();
    await cut(environment, fileOf(volumes, 'v'));
    await assert.rejects(volumes.remove(worldUid, signal), /still mounted, and nothing says by which driver/);
    await volumes.remove(worldUid, signal, [described]);
    assert.deepEqual(environment.calls(), ['publish', 'unpublish']);
    assert.deepEqual(environment.reconstructed, ['force-cleaned failure']);
  });

  it('a volume whose driver is not registered is removed only after a reboot', async () => {
    const environment = new CsiWorld();
    const volumes = await mounted(environment);
    environment.isThere = false;
    await assert.rejects(volumes.remove(worldUid, signal), /cannot be unpublished/);
    await environment.files.unmount(volumes.mountPathOf(worldUid, 'pv'));
    await assert.rejects(volumes.remove(worldUid, signal), /cannot be unpublished/);
    environment.boot = '';
    await assert.rejects(volumes.remove(worldUid, signal), /cannot be unpublished/);
    environment.boot = 'boot-2';
    await volumes.remove(worldUid, signal);
    assert.equal(environment.files.text(fileOf(volumes, 'pv')), undefined);
  });

  it('a volume whose driver is not registered is removed when another kubelet left only the data file', async () => {
    const environment = new CsiWorld();
    const volumes = await mounted(environment);
    const {
      bootID: _boot,
      publishedBy: _by,
      ...theirs
    } = JSON.parse(environment.files.text(fileOf(volumes, 'pv')) ?? '');
    await environment.files.replaceFile(fileOf(volumes, 'pv'), Buffer.from(JSON.stringify(theirs)), 0o644);
    environment.isThere = false;
    await environment.files.unmount(volumes.mountPathOf(worldUid, 'pv'));
    // The mount directory still exists, so it may be mounted.
    await assert.rejects(volumes.remove(worldUid, signal), /cannot be unpublished/);
    await environment.files.removeEmptyDirectory(volumes.mountPathOf(worldUid, 'pv'));
    await volumes.remove(worldUid, signal);
    assert.equal(environment.files.text(fileOf(volumes, 'pv')), undefined);
  });

  it('volumes are counted once in the reconstruction metrics, also when their data files are damaged', async () => {
    const environment = new CsiWorld();
    const volumes = await mounted(environment);
    await cut(environment, fileOf(volumes, 'pv'));
    await environment.runs(volumes);
    await environment.runs(volumes);
    assert.deepEqual(environment.reconstructed, ['reconstructed failure', 'reconstructed success']);
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

  const stagedFile = (environment: CsiWorld) =>
    environment.files.paths().find((path) => /^\/root\/plugins\/.*vol_data\.json$/.test(path)) ?? '';
  /** Creates a volume that a previous kubelet staged for a pod that was deleted afterwards. */
  async function staged(): Promise<CsiWorld> {
    const environment = new CsiWorld();
    await (await mounted(environment)).remove(worldUid, signal);
    environment.history.length = 0;
    return environment;
  }

  it('a volume with a truncated data file is unstaged when node status, recorded volume or pod contains its handle', async () => {
    for (const how of ['listed', 'noted', 'pod'] as const) {
      const environment = await staged();
      await cut(environment, stagedFile(environment));
      const later = environment.volumes();
      if (how === 'listed') environment.listed = ['kubernetes.io/csi/other^x', unique];
      if (how === 'noted') environment.noted = ['disk'];
      if (how === 'pod') {
        await environment.files.makeDirectory('/root/pods/p/volumes/kubernetes.io~csi/pv', 0o750);
        const text = JSON.stringify({ driverName: driver, volumeHandle: 'disk' });
        const file = '/root/pods/p/volumes/kubernetes.io~csi/pv/vol_data.json';
        await environment.files.replaceFile(file, Buffer.from(text), 0o644);
      }
      await environment.runs(later, 70_000);
      // A volume that is recorded for a pod, or used by a pod, stays staged.
      assert.deepEqual(environment.calls(), how === 'listed' ? ['unstage'] : [], how);
      assert.equal(stagedFile(environment) === '', how === 'listed', how);
      assert.equal(environment.logs.records.toArray().length, 0);
    }
  });

  it('a staged volume whose handle is unknown stays mounted, and is reported once', async () => {
    const environment = await staged();
    const file = stagedFile(environment);
    await cut(environment, file);
    const later = environment.volumes();
    await environment.runs(later, 200_000);
    const mount = file.replace('vol_data.json', 'globalmount');
    const because = `${file} is missing or damaged, so that nobody knows the handle: ${mount} is still mounted, by the CSI driver d.example`;
    assert.deepEqual(
      environment.logs.records.toArray().map(({ fields }) => fields['because']),
      [because],
    );
    assert.deepEqual([environment.calls(), stagedFile(environment)], [[], file]);
    await environment.files.unmount(mount);
    await environment.runs(later, 70_000);
    assert.equal(stagedFile(environment), '');
    assert.deepEqual(environment.reconstructed.slice(1), ['force-cleaned failure', 'force-cleaned success']);
  });

  it('a staging directory that was never recorded as staged is removed, unless a pod is about to stage the volume', async () => {
    const environment = new CsiWorld();
    await environment.files.makeDirectory(
      '/root/plugins/kubernetes.io/csi/d.example/0123/globalmount',
      0o750,
    );
    await environment.runs(environment.volumes(), 70_000);
    assert.deepEqual(await environment.files.names('/root/plugins/kubernetes.io/csi/d.example'), []);
  });

  it('a volume stays staged while it is mounted in the directory of a pod whose data file is damaged', async () => {
    const environment = await staged();
    const other = '/root/pods/p/volumes/kubernetes.io~csi/pv/mount';
    const file = other.replace(/mount$/, 'vol_data.json');
    await environment.files.makeDirectory(other, 0o750);
    await cut(environment, file);
    const later = environment.volumes({ otherMounts: async () => ['/elsewhere', other] });
    await environment.runs(later, 200_000);
    const mount = stagedFile(environment).replace('vol_data.json', 'globalmount');
    assert.deepEqual(
      [environment.calls(), environment.logs.records.toArray().map(({ fields }) => fields['because'])],
      [[], [`the device mount path "${mount}" is still mounted by other references [${other}]`]],
    );
    const text = JSON.stringify({ driverName: driver, volumeHandle: 'another' });
    await environment.files.replaceFile(file, Buffer.from(text), 0o644);
    await environment.runs(later, 70_000);
    assert.deepEqual(environment.calls(), ['unstage']);
  });
});
