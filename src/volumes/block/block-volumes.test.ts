import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { MemoryVolumeFiles } from '../../../test/fakes/memory-volume-files.ts';
import { podWith, worldUid } from '../../../test/fakes/payload-world.ts';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { podUid } from '../../pods/index.ts';
import type { StorageObserver } from '../manager/volume-metrics.ts';
import { unusable } from '../projected/payload.ts';
import type { BlockDevices } from './block-volumes.ts';
import { type BlockPlugin, BlockVolumes } from './block-volumes.ts';

const { signal } = new AbortController();
const pod = podWith([]);
const globals = '/root/plugins/kubernetes.io~local-volume/volumeDevices';
const shown = `${globals}/disk/${worldUid}`;
const link = `/root/pods/${worldUid}/volumeDevices/kubernetes.io~local-volume/disk`;
const volume = { plugin: 'local-volume' as BlockPlugin, name: 'disk', path: '/dev/by-id/d' };

/** Fake block devices with a fake kernel, controlled by the test. */
class Devices implements BlockDevices {
  readonly log: string[] = [];
  readonly bound = new Set<string>();
  readonly pinned = new Set<string>();
  readonly files: MemoryVolumeFiles;
  device: string | undefined = '/dev/d1';
  failing = '';

  constructor(files: MemoryVolumeFiles) {
    this.files = files;
  }

  async sizeOf(): Promise<number | undefined> {
    return undefined;
  }

  async find() {
    return this.device;
  }

  async bind(device: string, file: string) {
    this.#step('bind');
    if ((await this.files.kindAt(file)) === undefined)
      await this.files.writeFile(file, Buffer.alloc(0), { mode: 0o640 });
    if ((await this.files.mountAt(file)) === 'none') this.files.showDevice(device, file);
    this.bound.add(file);
  }

  async unbind(file: string) {
    this.#step('unbind');
    if (this.pinned.has(file) || this.failing === 'busy') return 'busy' as const;
    this.bound.delete(file);
    if ((await this.files.mountAt(file)) !== 'none') await this.files.unmount(file);
    await this.files.unlink(file);
    return 'done' as const;
  }

  async pin(file: string) {
    this.#step('pin');
    this.pinned.add(file);
  }

  async unpin(file: string) {
    this.#step('unpin');
    this.pinned.delete(file);
  }

  #step(name: string) {
    this.log.push(name);
    if (name === this.failing) throw unusable(`${name} failed`);
  }
}

function createEnvironment() {
  const [files, clock] = [new MemoryVolumeFiles(), new VirtualClock()];
  const devices = new Devices(files);
  const observed: string[] = [];
  const observe: StorageObserver = (operation, plugin) => void observed.push(`${operation} ${plugin.name}`);
  const make = () =>
    new BlockVolumes({ rootDir: '/root', podsDir: '/root/pods', files, devices, clock, observe });
  return { files, clock, devices, observed, make, volumes: make() };
}

describe('block volumes', () => {
  it('binds the device, links it in the pod directory and attaches a loop device, and undoes each step in reverse order', async () => {
    const { files, devices, observed, volumes, make } = createEnvironment();
    const mapped = await volumes.map(pod, volume, signal);
    assert.deepEqual(mapped, { state: 'new', global: `${globals}/disk`, ofPod: link.slice(0, -5) });
    assert.equal(volumes.bindPathOf(worldUid, 'local-volume', 'disk'), link);
    assert.equal(await files.readLink(link), '/dev/d1');
    assert.deepEqual([[...devices.bound], [...devices.pinned]], [[shown], [shown]]);
    assert.equal((await make().map(pod, volume, signal)).state, 'existing');
    devices.log.length = 0;
    await make().remove(worldUid, signal);
    assert.deepEqual(devices.log, ['unpin', 'unbind']);
    assert.deepEqual([await files.kindAt(link), await files.kindAt(globals)], [undefined, undefined]);
    assert.deepEqual(observed, ['unmap_device kubernetes.io/local-volume']);
    await volumes.remove(worldUid, signal);
  });

  it("binds the device of a CSI driver in a directory beside the driver's files", async () => {
    const { files, devices, volumes } = createEnvironment();
    const { global } = await volumes.map(pod, { ...volume, plugin: 'csi' }, signal);
    assert.equal(global, '/root/plugins/kubernetes.io/csi/volumeDevices/disk/dev');
    await files.makeDirectory('/root/plugins/kubernetes.io/csi/volumeDevices/disk/data', 0o750);
    await volumes.remove(worldUid, signal);
    assert.equal(devices.bound.size, 0);
    assert.deepEqual(await files.names('/root/plugins/kubernetes.io/csi/volumeDevices/disk'), ['data']);
  });

  it('links a volume again when its device has changed', async () => {
    const { files, devices, volumes } = createEnvironment();
    await volumes.map(pod, volume, signal);
    devices.device = '/dev/d2';
    assert.equal((await volumes.map(pod, volume, signal)).state, 'new');
    assert.equal(await files.readLink(link), '/dev/d2');
  });

  it('does not list the devices of the machine again while the bound file of the volume is in place', async () => {
    const { devices, files, volumes, make } = createEnvironment();
    await volumes.map(pod, volume, signal);
    devices.log.length = 0;
    assert.equal((await volumes.map(pod, volume, signal)).state, 'existing');
    assert.deepEqual(devices.log, []);
    // A new process maps the volume again: it does not know the state that the previous process
    // left, and a later pod may have the same UID.
    await make().map(pod, volume, signal);
    assert.deepEqual(devices.log.splice(0), ['bind', 'pin']);
    await files.unmount(shown);
    await volumes.map(pod, volume, signal);
    assert.deepEqual(devices.log.splice(0), ['bind', 'pin']);
    await volumes.remove(worldUid, signal);
    devices.log.length = 0;
    assert.equal((await volumes.map(pod, volume, signal)).state, 'new');
    assert.deepEqual(devices.log, ['bind', 'pin']);
  });

  it('binds the device again when attaching the loop device failed', async () => {
    const { devices, volumes } = createEnvironment();
    devices.failing = 'pin';
    await assert.rejects(volumes.map(pod, volume, signal));
    devices.failing = '';
    devices.log.length = 0;
    await volumes.map(pod, volume, signal);
    assert.deepEqual(devices.log, ['bind', 'pin']);
  });

  for (const [failing, message] of [
    ['find', 'MapVolume.SetUpDevice failed for volume "disk" : /dev/by-id/d is no block device'],
    ['bind', 'MapVolume.MapBlockVolume failed for volume "disk" : bind failed'],
    ['pin', 'MapVolume.MapBlockVolume failed for volume "disk" : pin failed'],
  ] as const) {
    it(`an error names the failed step (${failing}), and removing the pod undoes the completed steps`, async () => {
      const { files, devices, volumes, make } = createEnvironment();
      devices.failing = failing;
      if (failing === 'find') devices.device = undefined;
      await assert.rejects(volumes.map(pod, volume, signal), { message });
      devices.failing = '';
      await make().remove(worldUid, signal);
      assert.deepEqual(
        [devices.bound.size, devices.pinned.size, await files.kindAt(link)],
        [0, 0, undefined],
      );
    });
  }

  it('finds and unbinds a device whose link is missing after a crash', async () => {
    const { files, devices, volumes } = createEnvironment();
    await devices.bind('/dev/d1', shown);
    await volumes.remove(worldUid, signal);
    assert.deepEqual([devices.bound.size, await files.kindAt(globals)], [0, undefined]);
  });

  it('keeps a device bound for other pods that use it', async () => {
    const { devices, volumes } = createEnvironment();
    const other = { ...pod, metadata: { ...pod.metadata, uid: podUid('other') } };
    await volumes.map(pod, volume, signal);
    await volumes.map(other, volume, signal);
    await volumes.remove(worldUid, signal);
    assert.deepEqual([...devices.bound], [`${globals}/disk/other`]);
  });

  it('rejects the removal of a device in use, keeps its link, and reports the path in the error', async () => {
    const { files, clock, devices, volumes } = createEnvironment();
    await volumes.map(pod, volume, signal);
    devices.failing = 'busy';
    const refused = assert.rejects(volumes.remove(worldUid, signal), {
      code: 'VOLUME_REMOVE',
      message: `${shown} is still in use`,
    });
    await clock.advance(3_000);
    await refused;
    assert.equal(await files.kindAt(link), 'link');
  });
});
