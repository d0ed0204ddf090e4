import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { mountSyscalls, realClock } from '../../src/lib/index.ts';
import {
  type BlockDevices,
  type Disks,
  HostBlockDevices,
  HostDisks,
  HostVolumeFiles,
  type VolumeFiles,
} from '../../src/volumes/index.ts';
import { LoopDisk } from '../disks/loop-disk.ts';
import { MemoryBlockDevices } from '../fakes/memory-block-devices.ts';
import { MemoryDisks } from '../fakes/memory-disks.ts';
import { MemoryVolumeFiles } from '../fakes/memory-volume-files.ts';

const notRoot = process.getuid?.() === 0 ? false : 'needs root';
const timeout = 120_000;
const { signal } = new AbortController();

interface Machine extends AsyncDisposable {
  readonly files: VolumeFiles;
  readonly disks: Disks;
  readonly devices: BlockDevices;
  readonly root: string;
  /** The loop device of an empty disk image. */
  readonly device: string;
}

async function thisMachine(): Promise<Machine> {
  const root = await mkdtemp(join(tmpdir(), 'klg-devices-'));
  const disk = new LoopDisk(join(root, 'image'));
  const clock = realClock();
  const dispose = async () => {
    const mounts = (await readFile('/proc/self/mounts', 'utf8')).split('\n');
    const own = mounts.filter((line) => line.includes(root)).toReversed();
    for (const line of own) execFileSync('umount', [line.split(' ')[1] ?? '']);
    disk[Symbol.dispose]();
    await rm(root, { recursive: true });
  };
  return {
    files: new HostVolumeFiles(clock, mountSyscalls()),
    disks: new HostDisks(clock),
    devices: new HostBlockDevices(clock),
    root,
    device: disk.device,
    [Symbol.asyncDispose]: dispose,
  };
}

async function noMachine(): Promise<Machine> {
  const files = new MemoryVolumeFiles();
  const disks = new MemoryDisks(files);
  const device = '/dev/blank';
  disks.add(device, { kind: 'nothing' });
  const devices = new MemoryBlockDevices(files);
  return { files, disks, devices, root: '/r', device, [Symbol.asyncDispose]: async () => {} };
}

const machines = [
  { called: 'this machine', make: thisMachine, skip: notRoot },
  { called: 'no machine', make: noMachine, skip: false },
] as const;

for (const { called, make, skip } of machines) {
  describe(`mounting a disk on ${called}`, { skip, timeout }, () => {
    it('a disk is mounted once it has a file system, and is not formatted while another process holds it open', async () => {
      await using machine = await make();
      const { files, disks, root, device } = machine;
      const [directory, pod] = [join(root, 'global'), join(root, 'pod')];
      for (const path of [directory, pod]) await files.makeDirectory(path, 0o750);
      const mount = { device, directory, fsType: 'ext4', options: [] };
      assert.deepEqual(await disks.probe(device, signal), { kind: 'nothing' });
      await assert.rejects(disks.mount(mount, signal), { code: 'VOLUME_UNUSABLE' });
      await disks.format(device, 'ext4', signal);
      assert.deepEqual(await disks.probe(device, signal), { kind: 'file-system', type: 'ext4' });
      await assert.rejects(disks.mount({ ...mount, fsType: 'xfs' }, signal), { code: 'VOLUME_UNUSABLE' });
      await disks.check(device, signal);
      await disks.mount(mount, signal);
      assert.notEqual(await files.mountAt(directory), 'none');
      await assert.rejects(disks.format(device, 'ext4', signal), { code: 'VOLUME_UNUSABLE' });
      assert.deepEqual(await disks.otherMounts(directory), []);
      await files.bind(directory, pod, [], signal);
      assert.deepEqual(await disks.otherMounts(directory), [pod]);
      assert.deepEqual([await disks.deviceAt(directory), await disks.deviceAt(root)], [device, undefined]);
      assert.equal(await disks.isHeld(device, signal), true);
      for (const path of [pod, directory]) assert.equal(await files.unbind(path, signal), 'done');
      assert.equal(await disks.isHeld(device, signal), false);
      assert.equal(await disks.deviceAt(directory), undefined);
      await assert.rejects(disks.probe(join(root, 'gone'), signal), { code: 'VOLUME_UNUSABLE' });
    });
  });

  describe(`mapping a block device on ${called}`, { skip, timeout }, () => {
    it('a block device is found behind symbolic links, and other files are rejected', async () => {
      await using machine = await make();
      const { files, devices, root, device } = machine;
      await files.makeDirectory(join(root, 'd'), 0o750);
      await files.link(device, join(root, 'd/link'));
      assert.equal(await devices.find(join(root, 'd/link')), device);
      assert.deepEqual(await files.behind(join(root, 'd/link')), { path: device, kind: 'block-device' });
      for (const path of ['d', 'gone']) assert.equal(await devices.find(join(root, path)), undefined);
    });

    it('a block device is mapped to a file, which cannot be removed while the device is held open', async () => {
      await using machine = await make();
      const { files, devices, root, device } = machine;
      const file = join(root, 'shown/pod');
      for (const _time of ['once', 'again']) await devices.bind(device, file, signal);
      assert.equal(await files.kindAt(file), 'other');
      for (const _time of ['once', 'again']) await devices.pin(file, signal);
      assert.equal(await devices.unbind(file, signal), 'busy');
      await assert.rejects(files.unlink(file), { code: 'FILE_WRITE' });
      for (const _time of ['once', 'again']) await devices.unpin(file, signal);
      for (const _time of ['once', 'again']) assert.equal(await devices.unbind(file, signal), 'done');
      assert.equal(await files.kindAt(file), undefined);
    });

    it('attaching a block device does not replace an existing file of another program', async () => {
      await using machine = await make();
      const { files, devices, root, device } = machine;
      const file = join(root, 'shown/pod');
      await files.writeFile(file, Buffer.from('x'), { mode: 0o600 });
      await assert.rejects(devices.unbind(file, signal), { code: 'VOLUME_REMOVE' });
      await files.unlink(file);
      await assert.rejects(devices.bind(join(root, 'gone'), file, signal), { code: 'VOLUME_UNUSABLE' });
      assert.equal(await devices.unbind(file, signal), 'done');
      await devices.bind(device, file, signal);
      assert.equal(await devices.unbind(file, signal), 'done');
    });
  });
}
