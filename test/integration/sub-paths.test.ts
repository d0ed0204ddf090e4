import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  chmod,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import { realClock } from '../../src/lib/index.ts';
import { isUnmade, whyUnusable } from '../../src/runtime/containers/subpaths.ts';
import { hostSubPaths } from '../../src/runtime/index.ts';

const parts = hostSubPaths(realClock());
const { signal } = new AbortController();
const notRoot = process.getuid?.() === 0 ? false : 'needs root';

describe('subPath mounts of volumes', { skip: notRoot }, () => {
  let root: string;
  let volume: string;
  const targets = () => join(root, 'targets');
  const bind = (part: string, name = 'one') => parts.bind(volume, part, join(targets(), name), signal);
  const mounts = async () =>
    (await readFile('/proc/self/mounts', 'utf8')).split('\n').filter((line) => line.includes(root));

  before(async () => {
    root = await mkdtemp(join(tmpdir(), 'klg-parts-'));
  });
  beforeEach(async () => {
    volume = await mkdtemp(join(root, 'volume-'));
    await mkdir(join(volume, 'dir'));
    await writeFile(join(volume, 'dir', 'file'), 'text');
  });
  afterEach(async () => {
    await parts.unbind(targets(), signal);
    assert.deepEqual(await mounts(), []);
  });
  after(async () => {
    assert.deepEqual(await mounts(), []);
    await rm(root, { recursive: true });
  });

  it('mount sockets, devices and pipes without opening them', async () => {
    const server = createServer().listen(join(volume, 'dir/socket'));
    try {
      execFileSync('mkfifo', [join(volume, 'dir/pipe')]);
      execFileSync('mknod', [join(volume, 'dir/device'), 'c', '1', '3']);
      for (const name of ['socket', 'pipe', 'device']) {
        await bind(`dir/${name}`, name);
        const [here, there] = [await stat(join(targets(), name)), await stat(join(volume, 'dir', name))];
        assert.deepEqual([here.ino, here.mode, here.rdev], [there.ino, there.mode, there.rdev]);
        await assert.rejects(parts.readText(volume, `dir/${name}`, 10), { message: 'it is not a file' });
      }
    } finally {
      server.close();
    }
  });

  it('mount directories and files, again each time', async () => {
    await bind('dir');
    assert.deepEqual(await readdir(join(targets(), 'one')), ['file']);
    await bind('dir/file', 'two');
    assert.equal(await readFile(join(targets(), 'two'), 'utf8'), 'text');
    await bind('dir/file');
    assert.equal(await readFile(join(targets(), 'one'), 'utf8'), 'text');
    assert.equal((await mounts()).length, 2);
    await parts.unbind(targets(), signal);
    await assert.rejects(readdir(targets()), { code: 'ENOENT' });
    assert.equal(await readFile(join(volume, 'dir', 'file'), 'utf8'), 'text');
  });

  it('report a missing path that cannot be created without the host path', async () => {
    execFileSync('mount', ['--bind', volume, volume]);
    execFileSync('mount', ['-o', 'remount,bind,ro', volume]);
    try {
      await assert.rejects(bind('dir/new/part'), (error) => {
        assert.ok(isUnmade(error));
        assert.equal(whyUnusable(error), 'EROFS: read-only file system');
        return true;
      });
    } finally {
      execFileSync('umount', [volume]);
    }
    await symlink(root, join(volume, 'out'));
    await assert.rejects(bind('out/new'), (error) => !isUnmade(error));
  });

  it('leave what was mounted in the volume meanwhile in place', async () => {
    const inner = join(volume, 'dir/inner');
    execFileSync('mount', ['-t', 'tmpfs', 'tmpfs', volume]);
    execFileSync('mount', ['--make-shared', volume]);
    await mkdir(inner, { recursive: true });
    await bind('dir');
    execFileSync('mount', ['-t', 'tmpfs', 'tmpfs', inner]);
    await writeFile(join(inner, 'canary'), 'alive');
    assert.equal(await readFile(join(targets(), 'one/inner/canary'), 'utf8'), 'alive');
    await parts.unbind(targets(), signal);
    assert.equal(await readFile(join(inner, 'canary'), 'utf8'), 'alive');
    for (const path of [inner, volume]) execFileSync('umount', [path]);
  });

  it('find their mounts also behind a link', async () => {
    const link = join(root, 'link-to-targets');
    await mkdir(targets());
    await symlink(targets(), link);
    await parts.bind(volume, 'dir', join(link, 'one'), signal);
    await parts.bind(volume, 'dir', join(link, 'one'), signal);
    assert.equal((await mounts()).length, 1);
    await parts.unbind(join(link, 'one'), signal);
    assert.deepEqual(await mounts(), []);
    await rm(link);
  });

  it('remove mount points that have lost their mount, but none with content', async () => {
    await mkdir(join(targets(), 'a', 'b'), { recursive: true });
    await writeFile(join(targets(), 'a', 'b', '0'), '');
    await writeFile(join(targets(), 'kept'), 'content');
    await parts.unbind(targets(), signal);
    assert.deepEqual(await readdir(targets(), { recursive: true }), ['kept']);
    await rm(targets(), { recursive: true });
  });

  it('never remove a mounted or linked directory, even an empty one', async () => {
    const path = join(targets(), 'volume/container/0');
    await mkdir(join(path, 'empty'), { recursive: true });
    await writeFile(join(path, 'file'), '');
    const outside = join(root, 'outside-of-all');
    await mkdir(join(outside, 'empty'), { recursive: true });
    await symlink(outside, join(targets(), 'link'));
    await parts.unbind(targets(), signal);
    assert.deepEqual((await readdir(path)).toSorted(), ['empty', 'file']);
    assert.deepEqual(await readdir(outside), ['empty']);
    await rm(targets(), { recursive: true });
  });

  it('create missing directories with the owner and mode of the volume', async () => {
    await chmod(volume, 0o2775);
    await bind('new/deep');
    for (const path of ['new', 'new/deep'])
      assert.equal((await stat(join(volume, path))).mode & 0o7777, 0o2775, path);
  });

  it('follow links that stay inside, and no others', async () => {
    await symlink('dir', join(volume, 'inside'));
    await bind('inside/file');
    for (const [name, target] of [
      ['absolute', '/etc'],
      ['above', '../..'],
      ['dangling', '/nowhere/at/all'],
    ] as const) {
      await symlink(target, join(volume, name));
      const message = 'a symlink leads out of the volume';
      await assert.rejects(bind(name), { code: 'VOLUME_UNUSABLE', message });
    }
    await assert.rejects(bind('absolute/passwd'), { code: 'VOLUME_UNUSABLE' });
    await assert.rejects(bind('dir/../../x'), { code: 'VOLUME_UNUSABLE', message: "must not contain '..'" });
  });

  it('leave no handle open, whatever they find', async () => {
    const opened = async () => (await readdir('/proc/self/fd')).length;
    execFileSync('mkfifo', [join(volume, 'pipe')]);
    const before = await opened();
    for (let round = 0; round < 5; round++) {
      await bind(`made/${round}`);
      await bind('pipe');
      await assert.rejects(bind('dir/file/below'));
      await assert.rejects(parts.readText(volume, 'dir', 100), { message: 'it is not a file' });
    }
    assert.equal(await opened(), before);
  });

  it('read no more of a file than requested, whatever its reported size', async () => {
    // Like kernel files: without a size, but with content.
    await assert.rejects(parts.readText('/proc/self', 'status', 10), {
      code: 'VOLUME_UNUSABLE',
      message: 'it has more than 10 bytes, at most these are read',
    });
    assert.match(await parts.readText('/proc/self', 'status', 100_000), /^Name:/);
  });

  it('read only files of the volume', async () => {
    assert.equal(await parts.readText(volume, 'dir/file', 100), 'text');
    await assert.rejects(parts.readText(volume, 'dir/file', 3), { code: 'VOLUME_UNUSABLE' });
    await assert.rejects(parts.readText(volume, 'dir/none', 3), {
      code: 'VOLUME_UNUSABLE',
      message: 'it does not exist',
    });
    await symlink('/etc/passwd', join(volume, 'passwd'));
    await assert.rejects(parts.readText(volume, 'passwd', 1_000_000), { code: 'VOLUME_UNUSABLE' });
  });

  it('never leave the volume when a directory becomes a link concurrently', async () => {
    const outside = join(root, 'outside');
    await mkdir(outside);
    await writeFile(join(outside, 'secret'), '');
    await symlink(outside, join(volume, 'link'));
    let swapping = true;
    const renamed = (from: string, to: string) =>
      rename(join(volume, from), join(volume, to)).then(
        () => true,
        () => false,
      );
    const swaps = (async () => {
      for (; swapping; ) {
        await rename(join(volume, 'dir'), join(volume, 'aside'));
        // The concurrent writer creates the missing directory, which then blocks the creation.
        while (!(await renamed('link', 'dir')))
          await rm(join(volume, 'dir'), { recursive: true, force: true });
        await rename(join(volume, 'dir'), join(volume, 'link'));
        while (!(await renamed('aside', 'dir')))
          await rm(join(volume, 'dir'), { recursive: true, force: true });
      }
    })();
    const outcomes = new Set<string>();
    for (let round = 0; round < 60; round++) {
      const found = await bind('dir').then(
        async () => (await readdir(join(targets(), 'one'))).join(),
        () => 'refused',
      );
      outcomes.add(found);
    }
    swapping = false;
    await swaps;
    assert.ok(!outcomes.has('secret'), [...outcomes].join(' '));
  });
});
