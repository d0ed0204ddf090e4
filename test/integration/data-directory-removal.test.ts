import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import {
  claimDataDirectory,
  isDataDirectory,
  removeDataDirectory,
} from '../../src/cli/data-directory/content.ts';
import { type DataDirectory, dataDirectoryAt } from '../../src/cli/data-directory/data-directory.ts';

const notRoot = process.getuid?.() === 0 ? false : 'needs root';

describe('the removal of a data directory', { skip: notRoot }, () => {
  let outer: string;
  let directory: DataDirectory;
  let pods: string;

  beforeEach(async () => {
    outer = await mkdtemp(join(tmpdir(), 'klg-data-'));
    directory = dataDirectoryAt(join(outer, 'data'));
    await mkdir(directory.dataDir);
    await writeFile(join(directory.dataDir, 'notes'), '');
    await claimDataDirectory(directory);
    pods = join(directory.rootDir, 'pods');
    await mkdir(join(pods, 'a/volumes'), { recursive: true });
    await writeFile(join(pods, 'a/etc-hosts'), '');
    await writeFile(join(directory.dataDir, 'kubeling.log'), '');
  });
  afterEach(async () => {
    execFileSync('chattr', ['-R', '-f', '-ia', outer]);
    await rm(outer, { recursive: true });
  });

  it('removes files that a container has made immutable or append-only', async () => {
    execFileSync('chattr', ['+i', 'a/etc-hosts', 'a/volumes'], { cwd: pods });
    execFileSync('chattr', ['+a', 'a'], { cwd: pods });
    assert.deepEqual(await removeDataDirectory(directory), { retained: ['notes'], problems: [] });
    assert.deepEqual(await readdir(directory.dataDir), ['notes']);
  });

  it('reports files that it cannot remove, keeps the data directory claimed, and finishes when called again', async () => {
    const mounted = join(pods, 'a/volumes');
    execFileSync('mount', ['-t', 'tmpfs', 'tmpfs', mounted]);
    try {
      const { problems } = await removeDataDirectory(directory);
      assert.match(problems.join(), /^Cannot remove .*: cannot delete .*volumes: it is a mount point$/);
    } finally {
      execFileSync('umount', [mounted]);
    }
    assert.deepEqual((await readdir(directory.dataDir)).includes('kubeling.log'), false);
    assert.equal(await isDataDirectory(directory), true);
    assert.deepEqual(await removeDataDirectory(directory), { retained: ['notes'], problems: [] });
    assert.equal(await isDataDirectory(directory), false);
  });
});
