import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtemp, open, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { type MountSyscalls, mountSyscalls, realClock } from '../../src/lib/index.ts';
import { HostVolumeFiles, type VolumeFiles } from '../../src/volumes/index.ts';
import { MemoryVolumeFiles } from '../fakes/memory-volume-files.ts';

const notRoot = process.getuid?.() === 0 ? false : 'needs root';
const { signal } = new AbortController();

interface Machine extends AsyncDisposable {
  readonly files: VolumeFiles;
  readonly root: string;
}

async function thisMachine(calls: MountSyscalls | undefined): Promise<Machine> {
  const root = await mkdtemp(join(tmpdir(), 'klg-volume-files-'));
  const dispose = async () => {
    const mounts = (await readFile('/proc/self/mounts', 'utf8')).split('\n');
    const own = mounts.filter((line) => line.includes(root)).toReversed();
    for (const line of own) execFileSync('umount', [line.split(' ')[1] ?? '']);
    await rm(root, { recursive: true });
  };
  return { files: new HostVolumeFiles(realClock(), calls), root, [Symbol.asyncDispose]: dispose };
}

async function noMachine(): Promise<Machine> {
  return { files: new MemoryVolumeFiles(), root: '/r', [Symbol.asyncDispose]: async () => {} };
}

const machines = [
  { called: 'this machine', make: () => thisMachine(mountSyscalls()), skip: notRoot },
  { called: 'this machine, by programs', make: () => thisMachine(undefined), skip: notRoot },
  { called: 'no machine', make: noMachine, skip: false },
] as const;

for (const { called, make, skip } of machines) {
  describe(`volume files on ${called}`, { skip }, () => {
    it('a path in a volume is absent until it is created, and reading it before is not an error', async () => {
      await using machine = await make();
      const { files, root } = machine;
      const path = join(root, 'nothing/here');
      assert.equal(await files.kindAt(path), undefined);
      assert.equal(await files.readLink(path), undefined);
      assert.equal(await files.readFile(path), undefined);
      assert.deepEqual(await files.names(path), []);
      assert.equal(await files.mountAt(path), 'none');
      await files.unlink(path);
      await files.removeTree(path);
    });

    it('a directory is not removed when something is mounted in it', async () => {
      await using machine = await make();
      const { files, root } = machine;
      const directory = join(root, 'v');
      await files.makeDirectory(directory, 0o777);
      await files.mountMemory(directory, undefined, signal);
      await assert.rejects(files.removeEmptyDirectory(directory), { code: 'FILE_WRITE' });
      await files.unmount(directory, signal);
      assert.equal(await files.removeEmptyDirectory(directory), 'gone');
    });

    it('a link reports its own type, not that of its target', async () => {
      await using machine = await make();
      const { files, root } = machine;
      await files.writeFile(join(root, 'v/deep/file'), Buffer.from('x'), { mode: 0o600 });
      await files.link('deep/file', join(root, 'v/link'));
      assert.deepEqual(await files.names(join(root, 'v')), ['deep', 'link']);
      assert.equal(await files.kindAt(join(root, 'v/deep')), 'directory');
      assert.equal(await files.kindAt(join(root, 'v/deep/file')), 'file');
      assert.equal(await files.kindAt(join(root, 'v/link')), 'link');
      assert.equal(await files.readLink(join(root, 'v/link')), 'deep/file');
      assert.equal(await files.readLink(join(root, 'v/deep/file')), undefined);
      assert.equal(await files.readFile(join(root, 'v/link')), undefined);
      assert.equal((await files.readFile(join(root, 'v/deep/file')))?.toString(), 'x');
    });

    it('existing files are never overwritten, but links are replaced atomically', async () => {
      await using machine = await make();
      const { files, root } = machine;
      await files.makeDirectory(join(root, 'v'), 0o777);
      await files.makeDirectory(join(root, 'v'), 0o777);
      await files.writeFile(join(root, 'v/f'), Buffer.from('x'), { mode: 0o600 });
      await assert.rejects(files.writeFile(join(root, 'v/f'), Buffer.from('y'), { mode: 0o600 }), {
        code: 'FILE_WRITE',
      });
      await assert.rejects(files.makeDirectory(join(root, 'v/f'), 0o777), { code: 'FILE_WRITE' });
      await files.link('a', join(root, 'v/one'));
      await assert.rejects(files.link('b', join(root, 'v/one')), { code: 'FILE_WRITE' });
      await files.link('b', join(root, 'v/two'));
      await files.rename(join(root, 'v/two'), join(root, 'v/one'));
      assert.equal(await files.readLink(join(root, 'v/one')), 'b');
      assert.deepEqual(await files.names(join(root, 'v')), ['f', 'one']);
    });

    it('directories are removed recursively without following links', async () => {
      await using machine = await make();
      const { files, root } = machine;
      await files.writeFile(join(root, 'other/canary'), Buffer.from('x'), { mode: 0o600 });
      await files.writeFile(join(root, 'v/a/b/c'), Buffer.from('x'), { mode: 0o400 });
      await files.link(join(root, 'other'), join(root, 'v/a/out'));
      await files.removeTree(join(root, 'v'));
      assert.equal(await files.kindAt(join(root, 'v')), undefined);
      assert.equal(await files.kindAt(join(root, 'other/canary')), 'file');
    });

    it('a memory-backed mount hides the previous content of the directory until it is unmounted', async () => {
      await using machine = await make();
      const { files, root } = machine;
      const directory = join(root, 'v');
      await files.writeFile(join(directory, 'below'), Buffer.from('x'), { mode: 0o600 });
      await files.mountMemory(directory, 2n ** 20n, signal);
      assert.equal(await files.mountAt(directory), 'memory');
      assert.deepEqual(await files.names(directory), []);
      await files.writeFile(join(directory, 'above'), Buffer.from('x'), { mode: 0o600 });
      await assert.rejects(files.removeTree(root), { code: 'VOLUME_REMOVE', message: /is a mount point$/ });
      assert.deepEqual(await files.names(directory), ['above']);
      assert.equal(await files.unmount(directory, signal), 'done');
      assert.equal(await files.mountAt(directory), 'none');
      assert.deepEqual(await files.names(directory), ['below']);
      assert.equal(await files.unmount(directory, signal), 'done');
    });

    it('a memory-backed mount is in use while something is mounted in it', async () => {
      await using machine = await make();
      const { files, root } = machine;
      const directory = join(root, 'v');
      await files.makeDirectory(directory, 0o777);
      await files.mountMemory(directory, undefined, signal);
      await files.makeDirectory(join(directory, 'inner'), 0o777);
      await files.mountMemory(join(directory, 'inner'), undefined, signal);
      assert.equal(await files.unmount(directory, signal), 'busy');
      assert.equal(await files.unmount(join(directory, 'inner'), signal), 'done');
      assert.equal(await files.unmount(directory, signal), 'done');
    });

    it('a directory can be bind mounted at another path and unmounted, and keeps its content', async () => {
      await using machine = await make();
      const { files, root } = machine;
      const [disk, path] = [join(root, 'disk'), join(root, 'pod/place')];
      await files.writeFile(join(disk, 'canary'), Buffer.from('alive'), { mode: 0o600 });
      await files.link('disk', join(root, 'link'));
      assert.deepEqual(await files.behind(join(root, 'link')), { path: disk, kind: 'directory' });
      assert.deepEqual(await files.behind(join(disk, 'canary')), {
        path: join(disk, 'canary'),
        kind: 'other',
      });
      assert.equal(await files.behind(join(root, 'nothing')), undefined);
      await files.makeDirectory(path, 0o750);
      await files.bind(disk, path, [], signal);
      assert.equal(await files.mountAt(path), 'other');
      assert.deepEqual(await files.names(path), ['canary']);
      await assert.rejects(files.removeTree(join(root, 'pod')), { code: 'VOLUME_REMOVE' });
      assert.equal(await files.unbind(path, signal), 'done');
      assert.equal(await files.mountAt(path), 'none');
      assert.equal(await files.unbind(path, signal), 'done');
      assert.equal(await files.removeEmptyDirectory(path), 'gone');
      assert.equal(await files.removeEmptyDirectory(path), 'gone');
      assert.equal(await files.removeEmptyDirectory(disk), 'not-empty');
      assert.equal((await files.readFile(join(disk, 'canary')))?.toString(), 'alive');
    });

    it('mounting a memory-backed volume fails if its directory does not exist', async () => {
      await using machine = await make();
      await assert.rejects(machine.files.mountMemory(join(machine.root, 'none'), undefined, signal));
    });
  });
}

describe('bind mount of a directory of this machine', { skip: notRoot }, () => {
  const optionsAt = async (path: string) => {
    const lines = (await readFile('/proc/self/mounts', 'utf8')).split('\n');
    return (
      lines
        .find((line) => line.split(' ')[1] === path)
        ?.split(' ')[3]
        ?.split(',') ?? []
    );
  };

  it('a bind mount has the requested mount options and those of its source', async () => {
    await using machine = await thisMachine(undefined);
    const { files, root } = machine;
    const [disk, place] = [join(root, 'disk'), join(root, 'place')];
    for (const path of [disk, place]) await files.makeDirectory(path, 0o755);
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'nosuid', 'tmpfs', disk]);
    await files.bind(disk, place, ['ro', 'noatime'], signal);
    const options = await optionsAt(place);
    for (const option of ['ro', 'noatime', 'nosuid']) assert.ok(options.includes(option), options.join());
    assert.ok((await optionsAt(disk)).includes('rw'), 'other users may write there');
    await files.remount(place, ['nodev'], signal);
    for (const option of ['ro', 'nodev', 'nosuid'])
      assert.ok((await optionsAt(place)).includes(option), option);
    await assert.rejects(files.writeFile(join(place, 'f'), Buffer.from('x'), { mode: 0o600 }), {
      code: 'FILE_WRITE',
    });
  });

  it('a directory is not left mounted when the requested options cannot be applied', async () => {
    await using machine = await thisMachine(undefined);
    const { files, root } = machine;
    const [disk, place] = [join(root, 'disk'), join(root, 'place')];
    for (const path of [disk, place]) await files.makeDirectory(path, 0o755);
    await assert.rejects(files.bind(join(root, 'nowhere'), place, [], signal), {
      code: 'VOLUME_UNUSABLE',
      message: /^mount failed: /,
    });
    assert.equal(await files.mountAt(place), 'none');
  });

  it('unmounting a bind mount keeps the mounts inside its source', async () => {
    await using machine = await thisMachine(undefined);
    const { files, root } = machine;
    const [disk, place] = [join(root, 'disk'), join(root, 'place')];
    for (const path of [disk, place]) await files.makeDirectory(path, 0o755);
    execFileSync('mount', ['-t', 'tmpfs', 'tmpfs', disk]);
    execFileSync('mount', ['--make-shared', disk]);
    await files.bind(disk, place, [], signal);
    await files.makeDirectory(join(disk, 'inner'), 0o755);
    execFileSync('mount', ['-t', 'tmpfs', 'tmpfs', join(disk, 'inner')]);
    await files.writeFile(join(disk, 'inner/canary'), Buffer.from('alive'), { mode: 0o600 });
    assert.equal(await files.mountAt(join(place, 'inner')), 'memory', 'it is visible there, too');
    assert.equal(await files.unbind(place, signal), 'done');
    assert.equal(await files.mountAt(place), 'none');
    assert.equal(await files.mountAt(join(disk, 'inner')), 'memory');
    assert.equal((await files.readFile(join(disk, 'inner/canary')))?.toString(), 'alive');
  });

  it('foreign mounts inside a volume are unmounted, innermost first, and stay mounted at their other paths', async () => {
    await using machine = await thisMachine(undefined);
    const { files, root } = machine;
    const [disk, volume] = [join(root, 'disk'), join(root, 'volume')];
    const place = join(volume, 'deep/in side');
    for (const path of [disk, place]) await files.makeDirectory(path, 0o755);
    execFileSync('mount', ['-t', 'tmpfs', 'tmpfs', disk]);
    execFileSync('mount', ['--make-shared', disk]);
    execFileSync('mount', ['--bind', disk, place]);
    await files.makeDirectory(join(disk, 'inner'), 0o755);
    execFileSync('mount', ['-t', 'tmpfs', 'tmpfs', join(disk, 'inner')]);
    await files.writeFile(join(disk, 'inner/canary'), Buffer.from('alive'), { mode: 0o600 });
    assert.deepEqual(await files.mountsInside(volume), [place, join(place, 'inner')]);
    const user = await open(join(place, 'inner/canary'));
    assert.equal(await files.unmountInside(volume, signal), join(place, 'inner'));
    await user.close();
    assert.equal(await files.unmountInside(volume, signal), undefined);
    assert.deepEqual(await files.mountsInside(volume), []);
    assert.equal((await files.readFile(join(disk, 'inner/canary')))?.toString(), 'alive');
    assert.equal(await files.unmountInside(join(root, 'nowhere'), signal), undefined);
  });
});
