import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { realCgroupHost } from '../lib/index.ts';
import { CgroupFileCache } from './cgroup-file-cache.ts';

test('cgroup files stay open while every pass reads them, and are closed by the first pass that does not', () => {
  const root = mkdtempSync(join(tmpdir(), 'klg-cgroups-'));
  const openNow = () => readdirSync('/proc/self/fd').length;
  for (const path of ['one', 'two']) {
    mkdirSync(join(root, path));
    writeFileSync(join(root, path, 'memory.stat'), path);
  }
  const cgroups = new CgroupFileCache(realCgroupHost(), { version: 2, root });
  const look = (whose: string, path: string) => cgroups.of(whose, path).memory.read('memory.stat');
  const before = openNow();
  for (const _ of [1, 2]) assert.deepEqual([look('a', '/one'), look('b', '/two')], ['one', 'two']);
  assert.equal(openNow(), before + 2);
  cgroups.sweep();
  assert.equal(look('b', '/one'), 'one', 'its cgroup has changed');
  cgroups.sweep();
  assert.deepEqual([cgroups.size, openNow()], [1, before + 1]);
  cgroups.close();
  assert.deepEqual([cgroups.size, openNow()], [0, before]);
  rmSync(root, { recursive: true });
});

test('network files stay open while every pass reads them, and are closed by the first pass that does not', () => {
  const openNow = () => readdirSync('/proc/self/fd').length;
  const files = new CgroupFileCache(realCgroupHost(), { version: 2, root: tmpdir() });
  const nobody = '0';
  const here = `${process.pid}`;
  const alone = { count: 1, first: here };
  const before = openNow();
  assert.equal(files.networkOf('gone', nobody, 1), undefined);
  assert.match(files.networkOf('here', here, 1) ?? '', /^ *lo: /m);
  assert.deepEqual([files.size, openNow()], [1, before + 1]);
  assert.deepEqual([files.onlyProcessOf('gone'), files.onlyProcessOf('here')], [undefined, alone]);
  files.sweep();
  assert.match(files.networkOf('here', nobody, 1) ?? '', /^ *lo: /m, 'any living process of it');
  files.sweep();
  files.retainNetworkOf('here');
  files.retainNetworkOf('gone');
  files.sweep();
  assert.equal(files.size, 1);
  files.sweep();
  assert.deepEqual([files.size, openNow()], [0, before]);
  files.networkOf('many', here, 2);
  assert.equal(files.onlyProcessOf('many'), undefined, 'processes start and exit');
  files.close();
  assert.equal(openNow(), before);
});
