import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { realClock } from '../../src/lib/index.ts';
import { HostDisks } from '../../src/volumes/index.ts';
import { LoopDisk } from '../disks/loop-disk.ts';

test('treats a disk as empty only if its content could be read', { timeout: 120_000 }, async () => {
  const { signal } = new AbortController();
  const folder = await mkdtemp(join(tmpdir(), 'klg-disks-'));
  try {
    using disk = new LoopDisk(join(folder, 'disk'));
    const disks = new HostDisks(realClock());
    assert.deepEqual(await disks.probe(disk.device, signal), { kind: 'nothing' });
    disk.format();
    assert.deepEqual(await disks.probe(disk.device, signal), { kind: 'file-system', type: 'ext4' });
    // Neither a directory nor a missing file can be read as a disk.
    for (const path of [folder, join(folder, 'gone')])
      await assert.rejects(disks.probe(path, signal), { code: 'VOLUME_UNUSABLE' });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

/** Returns why the kernel does not let this process grow a mounted file system of that type. */
function withoutRight(type: 'ext4' | 'xfs'): string | false {
  const sysResource = 1n << 24n;
  const status = readFileSync('/proc/self/status', 'utf8');
  const held = BigInt(`0x${/^CapEff:\s*(\w+)$/m.exec(status)?.[1] ?? '0'}`);
  return type === 'ext4' && (held & sysResource) === 0n && 'it must have CAP_SYS_RESOURCE';
}

for (const type of ['ext4', 'xfs'] as const)
  test(`grows the mounted file system of a ${type} disk after the disk has grown`, {
    timeout: 300_000,
    skip: withoutRight(type),
  }, async () => {
    const { signal } = new AbortController();
    const mebi = 2 ** 20;
    const folder = await mkdtemp(join(tmpdir(), 'klg-disks-'));
    const directory = join(folder, 'mount');
    await mkdir(directory);
    try {
      using disk = new LoopDisk(join(folder, 'disk'), 400 * mebi);
      disk.format(type);
      const disks = new HostDisks(realClock());
      await disks.mount({ device: disk.device, directory, fsType: type, options: [] }, signal);
      try {
        const sizeMebi = async () => {
          const { blocks, bsize } = await statfs(directory);
          return (blocks * bsize) / mebi;
        };
        const before = await sizeMebi();
        await disks.grow({ device: disk.device, directory }, signal);
        assert.equal(await sizeMebi(), before, 'the disk has not grown');
        disk.resize(600 * mebi);
        await disks.grow({ device: disk.device, directory }, signal);
        const after = await sizeMebi();
        assert.ok(after > before + 150, `${before} ${after}`);
      } finally {
        execFileSync('umount', [directory]);
      }
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });

test('reports a file system that cannot be resized', { timeout: 120_000 }, async () => {
  const { signal } = new AbortController();
  const folder = await mkdtemp(join(tmpdir(), 'klg-disks-'));
  try {
    using disk = new LoopDisk(join(folder, 'disk'));
    const [disks, { device }] = [new HostDisks(realClock()), disk];
    await assert.rejects(disks.grow({ device, directory: '/nowhere' }, signal), {
      code: 'VOLUME_UNUSABLE',
      message: `resize of format unknown is not supported for device ${device} mounted at /nowhere`,
    });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
