import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { DiskWalker, hostUnresponsiveMounts, realClock, systemRandom } from '../../src/lib/index.ts';
import { HangingMount, noHangingMounts } from '../fakes/hanging-mount.ts';
import { eventually } from '../kubeling-node.ts';

const { signal } = new AbortController();
const clock = realClock();
const limitMs = 60_000;

function walker(): DiskWalker {
  const silent = hostUnresponsiveMounts(clock, systemRandom());
  return new DiskWalker({ clock, check: (path, inner) => silent.check(path, inner) });
}

function directory(): Disposable & { readonly path: string } {
  const path = mkdtempSync(join(tmpdir(), 'klg-walk-'));
  return { path, [Symbol.dispose]: () => void execFileSync('rm', ['-rf', path]) };
}

async function count(by: DiskWalker, path: string) {
  const [response] = await by.usagesOf([{ path }], limitMs, signal);
  assert.ok(response?.kind === 'counted', JSON.stringify(response));
  return response.usage;
}

describe('the disk walk in a worker thread', {
  skip: process.getuid?.() === 0 ? false : 'needs root',
}, () => {
  it('the disk walk stays on one mount, even where the same disk is mounted again', async () => {
    using at = directory();
    using by = walker();
    for (const name of ['own', 'other', 'bound']) mkdirSync(join(at.path, 'tree', name), { recursive: true });
    mkdirSync(join(at.path, 'beside'));
    writeFileSync(join(at.path, 'beside/large'), Buffer.alloc(500_000, 1));
    writeFileSync(join(at.path, 'tree/own/file'), Buffer.alloc(10_000, 1));
    const before = await count(by, join(at.path, 'tree'));
    execFileSync('mount', ['-t', 'tmpfs', 'tmpfs', join(at.path, 'tree/other')]);
    execFileSync('mount', ['--bind', join(at.path, 'beside'), join(at.path, 'tree/bound')]);
    try {
      writeFileSync(join(at.path, 'tree/other/large'), Buffer.alloc(500_000, 1));
      const after = await eventually('the mounts to be visible', async () => {
        const usage = await count(by, join(at.path, 'tree'));
        return usage.inodesUsed < before.inodesUsed ? usage : undefined;
      });
      assert.equal(after.inodesUsed, before.inodesUsed - 2);
      assert.ok(after.usedBytes <= before.usedBytes);
    } finally {
      for (const name of ['other', 'bound']) execFileSync('umount', [join(at.path, 'tree', name)]);
    }
  });

  it('the disk walk is not blocked by an unresponsive mount at or below its start', {
    skip: noHangingMounts,
  }, async () => {
    using at = directory();
    using by = walker();
    mkdirSync(join(at.path, 'tree/dead'), { recursive: true });
    writeFileSync(join(at.path, 'tree/file'), '');
    using _dead = new HangingMount(join(at.path, 'tree/dead'));
    assert.deepEqual((await count(by, join(at.path, 'tree'))).inodesUsed, 2);
    const [inside] = await by.usagesOf([{ path: join(at.path, 'tree/dead') }], limitMs, signal);
    assert.equal(inside?.kind, 'failed');
    assert.equal((await count(by, join(at.path, 'tree'))).isComplete, true, 'it continues');
  });

  it('the disk walk keeps the main thread responsive and limits its work per second', async () => {
    using at = directory();
    using by = walker();
    const script = `
      for (let d = 0; d < 40; d++) { fs.mkdirSync('d' + d); for (let f = 0; f < 300; f++) fs.writeFileSync('d' + d + '/f' + f, ''); }`;
    execFileSync(process.execPath, ['-e', script], { cwd: at.path });
    await count(by, at.path);
    const begin = performance.now();
    const [usage, soon] = await Promise.all([
      count(by, at.path),
      by
        .usagesOf([{ path: `${tmpdir()}/nowhere-at-all` }], 1_000, signal)
        .then(() => performance.now() - begin),
    ]);
    const tookMs = performance.now() - begin;
    assert.equal(usage.inodesUsed, 12_041);
    // The rate limit is 10,000 files per second with a burst of 4,000.
    assert.ok(tookMs > 500, `${tookMs} ms`);
    assert.ok(soon < tookMs, 'a small walk does not wait for a large one');
  });
});
