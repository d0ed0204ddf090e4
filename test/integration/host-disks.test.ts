import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { realClock } from '../../src/lib/index.ts';
import { HostDisks } from '../../src/volumes/index.ts';
import { LoopDisk } from '../disks/loop-disk.ts';

test('a disk is empty only if it could be read', { timeout: 120_000 }, async () => {
  const { signal } = new AbortController();
  const folder = await mkdtemp(join(tmpdir(), 'klg-disks-'));
  try {
    using disk = new LoopDisk(join(folder, 'disk'));
    const disks = new HostDisks(realClock());
    assert.deepEqual(await disks.probe(disk.device, signal), { kind: 'nothing' });
    disk.format();
    assert.deepEqual(await disks.probe(disk.device, signal), { kind: 'file-system', type: 'ext4' });
    // Nobody can read a directory as a disk, nor what is not there.
    for (const path of [folder, join(folder, 'gone')])
      await assert.rejects(disks.probe(path, signal), { code: 'VOLUME_UNUSABLE' });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
