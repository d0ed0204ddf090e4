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

  it('a subPath that is a socket, device or pipe is mounted without opening it', async () => {
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

  it('a subPath that is a directory or file is mounted, also a second time', async () => {
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

  it('a missing subPath that cannot be created is reported without the host path', async () => {
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

  it('unmounting a subPath keeps mounts that were added inside the volume', async () => {
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

  it('mounts of a subPath are found also when their path contains a link', async () => {
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

  it('empty mount points whose mount is lost are removed, and files with content are kept', async () => {
    await mkdir(join(targets(), 'a', 'b'), { recursive: true });
    await writeFile(join(targets(), 'a', 'b', '0'), '');
    await writeFile(join(targets(), 'kept'), 'content');
    await parts.unbind(targets(), signal);
    assert.deepEqual(await readdir(targets(), { recursive: true }), ['kept']);
    await rm(targets(), { recursive: true });
  });

  it('a mounted or linked directory is never removed, even if it is empty', async () => {
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

  it('a missing subPath directory is created with the owner and mode of the volume', async () => {
    await chmod(volume, 0o2775);
    await bind('new/deep');
    for (const path of ['new', 'new/deep'])
      assert.equal((await stat(join(volume, path))).mode & 0o7777, 0o2775, path);
  });

  it('links that stay inside the volume are followed, other links are rejected', async () => {
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

  it('no file descriptor stays open, whatever is found at a subPath', async () => {
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

  it('reading a file of a volume is limited to the requested size, whatever size the file reports', async () => {
    // Kernel files such as /proc/self/status report no size but have content.
    await assert.rejects(parts.readText('/proc/self', 'status', 10), {
      code: 'VOLUME_UNUSABLE',
      message: 'it has more than 10 bytes, at most these are read',
    });
    assert.match(await parts.readText('/proc/self', 'status', 100_000), /^Name:/);
  });

  it('only files inside the volume are read', async () => {
    assert.equal(await parts.readText(volume, 'dir/file', 100), 'text');
    await assert.rejects(parts.readText(volume, 'dir/file', 3), { code: 'VOLUME_UNUSABLE' });
    await assert.rejects(parts.readText(volume, 'dir/none', 3), {
      code: 'VOLUME_UNUSABLE',
      message: 'it does not exist',
    });
    await symlink('/etc/passwd', join(volume, 'passwd'));
    await assert.rejects(parts.readText(volume, 'passwd', 1_000_000), { code: 'VOLUME_UNUSABLE' });
  });

  it('a subPath never leads out of the volume while a directory is concurrently replaced by a link', async () => {
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
        // The tested code may create the missing directory concurrently, which then blocks the
        // rename.
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
