import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { MemoryDisks } from '../../../test/fakes/memory-disks.ts';
import { MemoryVolumeFiles } from '../../../test/fakes/memory-volume-files.ts';
import { podWith, worldUid } from '../../../test/fakes/payload-world.ts';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { podUid } from '../../pods/index.ts';
import type { VolumeFiles } from '../files/volume-files.ts';
import { unusable } from '../projected/payload.ts';
import { LocalDisks } from './local-disks.ts';
import { LocalVolumes } from './local-volumes.ts';

const { signal } = new AbortController();
const pod = podWith([]);
const other = { ...pod, metadata: { ...pod.metadata, uid: podUid('other') } };
const global = '/root/plugins/kubernetes.io/local-volume/mounts/disk';
const place = `/root/pods/${worldUid}/volumes/kubernetes.io~local-volume/disk`;
const volume = { name: 'disk', path: '/dev/d', readOnly: false, mountOptions: [] };

function createEnvironment() {
  const files = new MemoryVolumeFiles();
  const disks = new MemoryDisks(files);
  disks.add('/dev/d', { kind: 'nothing' });
  const clock = new VirtualClock();
  const observed: string[] = [];
  /** Creates LocalDisks as after a kubelet restart. */
  const make = (change: Partial<VolumeFiles> = {}) => {
    const own = Object.assign(Object.create(files) as VolumeFiles, change);
    const bound: VolumeFiles = new Proxy(own, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name);
        return typeof value === 'function' ? value.bind(files) : value;
      },
    });
    const mounted = new LocalDisks({
      rootDir: '/root',
      files: bound,
      disks,
      clock,
      observe: (operation, plugin, { outcome }) =>
        void observed.push(`${operation} ${plugin.name} ${outcome}`),
    });
    return new LocalVolumes({ podsDir: '/root/pods', files: bound, clock, disks: mounted });
  };
  const remove = async (volumes: LocalVolumes) => {
    const removing = volumes.remove(worldUid, signal).then(
      () => 'done',
      (error: Error) => error.message,
    );
    await clock.advance(10_000);
    return await removing;
  };
  return { files, disks, observed, make, remove };
}

describe('local disks used by pods', () => {
  it('a local disk is formatted and mounted once, and unmounted after the last pod', async () => {
    const { files, observed, make, remove } = createEnvironment();
    const volumes = make();
    for (const one of [pod, other]) await volumes.setUp(one, volume, 'first', signal);
    assert.equal(files.mounts().filter(({ origin }) => origin === '/dev/d').length, 3);
    assert.equal(await remove(volumes), 'done');
    assert.equal(await files.mountAt(global), 'other');
    await volumes.remove(other.metadata.uid, signal);
    assert.deepEqual([files.mounts(), await files.kindAt(global)], [[], undefined]);
    assert.deepEqual(observed, ['unmount_device kubernetes.io/local-volume success']);
  });

  it('a local disk in use blocks the removal of its pod, also after a restart', async () => {
    const { files, make, remove } = createEnvironment();
    await make().setUp(pod, volume, 'first', signal);
    files.busy.add(global);
    const volumes = make();
    for (const _time of ['once', 'again']) assert.equal(await remove(volumes), `${global} is still in use`);
    assert.equal(await remove(make()), `${global} is still in use`);
    assert.equal(await files.mountAt(place), 'none');
    files.busy.clear();
    assert.equal(await remove(make()), 'done');
    assert.deepEqual([files.mounts(), await files.kindAt(place)], [[], undefined]);
  });

  it('a local disk that another process holds blocks the removal of its pod, unless another pod uses the disk again', async () => {
    const { files, disks, make, remove } = createEnvironment();
    const volumes = make();
    await volumes.setUp(pod, volume, 'first', signal);
    disks.held.add('/dev/d');
    const why = '/dev/d: the device is in use when it was no longer expected to be in use';
    for (const _time of ['once', 'again']) assert.equal(await remove(volumes), why);
    assert.deepEqual([files.mounts(), await files.kindAt(global)], [[], 'directory']);
    await volumes.setUp(other, volume, 'first', signal);
    assert.equal(await remove(volumes), 'done');
    await assert.rejects(volumes.remove(other.metadata.uid, signal), { message: why });
    disks.held.clear();
    await volumes.remove(other.metadata.uid, signal);
    assert.deepEqual([files.mounts(), await files.kindAt(global)], [[], undefined]);
  });

  it('a local disk shared by two volumes is unmounted once no pod uses either volume', async () => {
    const { files, make, remove } = createEnvironment();
    const volumes = make();
    await volumes.setUp(pod, volume, 'first', signal);
    await volumes.setUp(other, { ...volume, name: 'second' }, 'first', signal);
    assert.equal(await remove(volumes), 'done');
    await volumes.remove(other.metadata.uid, signal);
    assert.deepEqual(files.mounts(), []);
  });

  it('a local disk that was mounted for a pod but not bind-mounted blocks the removal of the pod', async () => {
    const { files, disks, make, remove } = createEnvironment();
    const mount = disks.mount.bind(disks);
    disks.mount = async (asked) => {
      assert.equal(
        await files.kindAt(place),
        'directory',
        'a kill at this point leaves the marker directory',
      );
      await mount(asked);
    };
    const bind = () => Promise.reject(unusable('not today'));
    await assert.rejects(make({ bind }).setUp(pod, volume, 'first', signal), /not today/);
    assert.equal(await files.mountAt(global), 'other');
    files.busy.add(global);
    assert.equal(await remove(make()), `${global} is still in use`);
    files.busy.clear();
    assert.equal(await remove(make()), 'done');
    assert.deepEqual(files.mounts(), []);
  });

  it('a local disk that was mounted after its pod was removed is unmounted when the volumes of the next terminated pod are removed', async () => {
    const { files, make } = createEnvironment();
    const bind = () => Promise.reject(unusable('not today'));
    await assert.rejects(make({ bind }).setUp(pod, volume, 'first', signal), /not today/);
    await files.removeTree(`/root/pods/${worldUid}`);
    assert.equal(await files.mountAt(global), 'other');
    await make().remove(other.metadata.uid, signal);
    assert.deepEqual([files.mounts(), await files.kindAt(global)], [[], undefined]);
  });

  it('a local disk in use does not block the removal of a pod that does not use it', async () => {
    const { files, make, remove } = createEnvironment();
    const volumes = make();
    await volumes.setUp(other, volume, 'first', signal);
    files.busy.add(global);
    assert.equal(await remove(volumes), 'done');
  });
});
