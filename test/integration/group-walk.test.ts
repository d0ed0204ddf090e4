import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { chmod, lstat, mkdir, mkdtemp, rename, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { realClock } from '../../src/lib/index.ts';
import { HostVolumeFiles } from '../../src/volumes/index.ts';
import { walkForGroup } from '../../src/volumes/ownership/group-walk.ts';

const notRoot = process.getuid?.() === 0 ? false : 'needs root';
const group = 4711;

describe('the change of the group of volume files', { skip: notRoot, timeout: 300_000 }, () => {
  const files = new HostVolumeFiles(realClock());
  let root: string;
  let volume: string;

  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'klg-group-'));
    volume = join(root, 'volume');
    await mkdir(join(volume, 'deep/er'), { recursive: true });
    await writeFile(join(volume, 'deep/er/file'), '');
  });
  afterEach(async () => {
    // Removes the tree with `rm`, which supports any depth.
    execFileSync('rm', ['-rf', root]);
  });

  /**
   * Creates directories deeper than the maximum path length, each from its parent. Each level has
   * two files and a side directory.
   */
  function dig(steps: number): void {
    const level =
      'mkdirSync("d"); mkdirSync("side"); writeFileSync("file", ""); writeFileSync("side/file", "")';
    const script = `const { mkdirSync, writeFileSync } = require("fs"); for (let step = 0; step < ${steps}; step++) { ${level}; process.chdir("d"); }`;
    execFileSync(process.execPath, ['-e', script], { cwd: volume });
  }

  const of = async (path: string) => {
    const { gid, mode } = await lstat(join(volume, path));
    return [gid, (mode & 0o7777).toString(8)];
  };

  it('changes all files, the root directory last, in a separate process that reports its progress', async () => {
    for (let number = 0; number < 2_500; number++) await writeFile(join(volume, `deep/${number}`), '');
    await writeFile(join(volume, 'closed'), '', { mode: 0o400 });
    await chmod(join(volume, 'deep/er'), 0o700);
    await symlink('/etc/hostname', join(volume, 'link'));
    const observed: number[] = [];
    const news = { processed: (count: number) => void observed.push(count), unchanged: () => {} };
    await files.giveToGroup(volume, group, 'write', news);
    assert.equal(observed.at(-1), 2_500 + 6);
    assert.deepEqual(await of('closed'), [group, '660']);
    assert.deepEqual(await of('deep/2499'), [group, '664']);
    assert.deepEqual(await of('deep/er'), [group, '2770']);
    assert.deepEqual(await of('.'), [group, '2775']);
    assert.equal((await of('link'))[0], group);
    assert.notEqual((await stat('/etc/hostname')).gid, group);
  });

  for (const [where, access, steps] of [
    ['a separate process', 'write', 1_500],
    ['this process', 'as-is', 500],
  ] as const)
    it(`changes files at any depth with few open handles, in ${where}`, async () => {
      dig(steps);
      const observed: number[] = [];
      let most = 0;
      const watched = setInterval(() => {
        most = Math.max(most, readdirSync('/proc/self/fd').length);
      }, 5);
      try {
        const news = { processed: (count: number) => void observed.push(count), unchanged: () => {} };
        await files.giveToGroup(volume, group, access, news);
      } finally {
        clearInterval(watched);
      }
      assert.equal(observed.at(-1), 4 * steps + 4);
      assert.ok(most < 200, `${most} handles`);
      const find = execFileSync('bash', ['-c', 'find . ! -group "$1" | wc -l', 'find', String(group)], {
        cwd: volume,
        encoding: 'utf8',
      });
      assert.equal(find.trim(), '0');
    });

  it('changes no file outside the volume when a deep directory is moved out during the walk', async () => {
    dig(200);
    const outside = join(root, 'outside');
    await mkdir(outside);
    await writeFile(join(outside, 'file'), '', { mode: 0o600 });
    const deep = join(volume, ...Array.from({ length: 100 }, () => 'd'));
    let isOver = false;
    const move = async () => {
      while (!isOver) {
        await rename(deep, join(outside, 'd'));
        await rename(join(outside, 'd'), deep);
      }
    };
    const moving = move();
    for (let times = 0; times < 20; times++)
      await walkForGroup(volume, { group: group + (times % 2), bits: 0o660 }).catch((error: unknown) => {
        assert.match(String(error), /was moved|ENOENT/);
      });
    isOver = true;
    await moving;
    const { gid, mode } = await lstat(join(outside, 'file'));
    assert.deepEqual([gid, mode & 0o777], [0, 0o600]);
    assert.equal((await lstat(outside)).gid, 0);
  });

  it('changes files whose names are not valid UTF-8', async () => {
    const name = Buffer.concat([Buffer.from(`${volume}/deep/`), Buffer.from([0x62, 0xff])]);
    await mkdir(name);
    await writeFile(Buffer.concat([name, Buffer.from([0x2f, 0x80])]), '');
    const { visited, unchanged } = await walkForGroup(volume, { group });
    assert.deepEqual([visited, unchanged], [6, 0]);
    assert.equal((await lstat(name)).gid, group);
  });

  it('keeps file modes where no mode change is requested', async () => {
    await writeFile(join(volume, 'closed'), '', { mode: 0o400 });
    await files.giveToGroup(volume, group, 'as-is');
    assert.deepEqual(await of('closed'), [group, '400']);
    assert.deepEqual(await of('deep'), [group, '755']);
  });

  it('skips file systems mounted inside the volume', async () => {
    execFileSync('mount', ['-t', 'tmpfs', 'tmpfs', join(volume, 'deep/er')]);
    try {
      await files.giveToGroup(volume, group, 'write');
      assert.equal((await of('deep'))[0], group);
      assert.equal((await of('deep/er'))[0], 0);
    } finally {
      execFileSync('umount', [join(volume, 'deep/er')]);
    }
  });

  it('reports a file that cannot be changed, unless a callback handles it', async () => {
    execFileSync('mount', ['--bind', volume, volume]);
    execFileSync('mount', ['-o', 'remount,bind,ro', volume]);
    try {
      await assert.rejects(files.giveToGroup(volume, group, 'write'), {
        code: 'FILE_WRITE',
        message: /read-only file system/,
      });
      const reported: unknown[] = [];
      const unchanged = (count: number, because: string) => void reported.push(count, because);
      await files.giveToGroup(volume, group, 'write', { processed: () => {}, unchanged });
      assert.equal(reported[0], 4);
      assert.match(String(reported[1]), /read-only file system/);
    } finally {
      execFileSync('umount', [volume]);
    }
  });

  it('changes no other file when directories and files are replaced by links during the walk', async () => {
    const outside = join(root, 'outside');
    await mkdir(outside);
    await writeFile(join(outside, 'file'), '', { mode: 0o600 });
    await symlink(outside, join(root, 'link'));
    await mkdir(join(root, 'swapped'));
    await writeFile(join(root, 'swapped/file'), '');
    let isOver = false;
    const swap = async () => {
      while (!isOver) {
        await rename(join(root, 'swapped'), join(volume, 'place'));
        await rename(join(volume, 'place'), join(root, 'swapped'));
        await rename(join(root, 'link'), join(volume, 'place'));
        await rename(join(volume, 'place'), join(root, 'link'));
      }
    };
    const swapping = swap();
    for (let times = 0; times < 300; times++) {
      await walkForGroup(volume, { group: group + (times % 2), bits: 0o660 }).catch((error: unknown) => {
        // A directory may have been replaced by a link before it is read.
        assert.match(String(error), /ENOTDIR|ENOENT/);
      });
    }
    isOver = true;
    await swapping;
    const { gid, mode } = await lstat(join(outside, 'file'));
    assert.deepEqual([gid, mode & 0o777], [0, 0o600]);
    assert.equal((await lstat(outside)).gid, 0);
  });
});
