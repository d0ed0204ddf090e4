import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { rm, statfs, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { promisify } from 'node:util';
import { StoreRounds } from '../chaos/store-rounds.ts';
import { assertLogIsWhole, ownDirectory, StoreRig } from '../fakes/store-rig.ts';

const run = promisify(execFile);
const isRoot = process.getuid?.() === 0;

/** A separate file system so small that a test can fill it. */
async function smallDisk(megabytes: number): Promise<AsyncDisposable & { readonly path: string }> {
  const dir = await ownDirectory();
  await run('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'small', dir.path]);
  const dispose = async () => {
    await run('umount', [dir.path]);
    await dir[Symbol.asyncDispose]();
  };
  return { path: dir.path, [Symbol.asyncDispose]: dispose };
}

/** Fills the file system until no space is left. */
async function fill(dir: string): Promise<string> {
  const ballast = join(dir, 'ballast');
  const { bavail, bsize } = await statfs(dir);
  await writeFile(ballast, Buffer.alloc(bavail * bsize));
  return ballast;
}

async function until(isSo: () => boolean): Promise<void> {
  const signal = AbortSignal.timeout(120_000);
  while (!isSo()) {
    signal.throwIfAborted();
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

describe('store of the embedded API', () => {
  it('the store contains all acknowledged writes after the process is killed repeatedly', {
    timeout: 120_000,
  }, async () => {
    const interrupted = new Promise<never>(() => {});
    const report = await StoreRounds.run({ kills: 5, seed: 7, tell: () => {}, interrupted });
    assert.ok(report.writes > 0);
  });

  it('the store recovers from a full disk', {
    skip: isRoot ? false : 'mounts need root',
    timeout: 300_000,
  }, async () => {
    await using disk = await smallDisk(8);
    const path = join(disk.path, 'api', 'objects.db');
    await using first = await StoreRig.open(path);
    const data = 'x'.repeat(10_000);
    const safe: string[] = [];
    for (let index = 0; index < 20; index++) {
      await first.write(`p${index}`, { data });
      safe.push(`p${index}`);
    }
    const ballast = await fill(disk.path);
    const refused: string[] = [];
    await assert.rejects(
      async () => {
        for (let index = 0; index < 1_000; index++) {
          refused[0] = `q${index}`;
          await first.write(`q${index}`, { data });
          safe.push(`q${index}`);
        }
      },
      { code: 'STORE_WRITE', message: /no room is left on its disk/ },
    );
    assert.equal(first.store.writeProblem()?.code, 'STORE_WRITE');
    assert.ok(first.store.stats().failedCommits > 0);

    await rm(ballast);
    await until(() => first.store.writeProblem() === undefined);
    await first.write('after', { data });
    await first[Symbol.asyncDispose]();

    await using second = await StoreRig.open(path);
    assertLogIsWhole(second.store);
    for (const name of [...safe, ...refused, 'after']) assert.ok(second.get(name), `${name} is there`);
  });

  it('the store keeps acknowledged writes when it closes while the disk is full', {
    skip: isRoot ? false : 'mounts need root',
  }, async () => {
    await using disk = await smallDisk(4);
    const path = join(disk.path, 'api', 'objects.db');
    await using first = await StoreRig.open(path);
    await first.write('safe', { data: 'x'.repeat(10_000) });
    const ballast = await fill(disk.path);
    await assert.rejects(first.write('huge', { data: 'x'.repeat(1_000_000) }), { code: 'STORE_WRITE' });
    await first[Symbol.asyncDispose]();
    await rm(ballast);

    await using second = await StoreRig.open(path);
    assert.ok(second.get('safe'));
    assert.equal(second.get('huge'), undefined);
  });
});
