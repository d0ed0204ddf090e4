import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { loopDevicesOf } from './loop-devices.ts';

test('loop devices are found by what they hold, and none where there are no devices', async () => {
  const sysDir = await mkdtemp(join(tmpdir(), 'loops-'));
  assert.deepEqual(await loopDevicesOf('/a', sysDir), []);
  const holds = { loop0: '/a', loop1: '/a/b', loop2: '/a', loop3: '/a (deleted)', sda: '/a' };
  for (const [name, path] of Object.entries(holds)) {
    await mkdir(join(sysDir, 'block', name, 'loop'), { recursive: true });
    await writeFile(join(sysDir, 'block', name, 'loop/backing_file'), `${path}\n`);
  }
  await mkdir(join(sysDir, 'block/loop4'));
  assert.deepEqual((await loopDevicesOf('/a', sysDir)).toSorted(), ['/dev/loop0', '/dev/loop2']);
  assert.deepEqual(await loopDevicesOf('/b', sysDir), []);
  await rm(sysDir, { recursive: true });
});
