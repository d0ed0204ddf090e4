import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { type MountCalls, mountCalls, realClock } from '../../src/lib/index.ts';
import { HostVolumeFiles, MemoryVolumeFiles, type VolumeFiles } from '../../src/volumes/index.ts';

const notRoot = process.getuid?.() === 0 ? false : 'needs root';
const { signal } = new AbortController();

interface Machine extends AsyncDisposable {
  readonly files: VolumeFiles;
  readonly root: string;
}

async function thisMachine(calls: MountCalls | undefined): Promise<Machine> {
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
  { called: 'this machine', make: () => thisMachine(mountCalls()), skip: notRoot },
  { called: 'this machine, by programs', make: () => thisMachine(undefined), skip: notRoot },
  { called: 'no machine', make: noMachine, skip: false },
] as const;

for (const { called, make, skip } of machines) {
  describe(`files of volumes on ${called}`, { skip }, () => {
    it('are not there until they are made, which is no failure', async () => {
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

    it('are what they are, not what a link leads to', async () => {
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

    it('are never written over, but links are replaced in one step', async () => {
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

    it('are removed with all below, links but not what they lead to', async () => {
      await using machine = await make();
      const { files, root } = machine;
      await files.writeFile(join(root, 'other/canary'), Buffer.from('x'), { mode: 0o600 });
      await files.writeFile(join(root, 'v/a/b/c'), Buffer.from('x'), { mode: 0o400 });
      await files.link(join(root, 'other'), join(root, 'v/a/out'));
      await files.removeTree(join(root, 'v'));
      assert.equal(await files.kindAt(join(root, 'v')), undefined);
      assert.equal(await files.kindAt(join(root, 'other/canary')), 'file');
    });

    it('in memory hide what was there until they are unmounted', async () => {
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

    it('in memory are in use while something is mounted among them', async () => {
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

    it('cannot be mounted where there is no directory', async () => {
      await using machine = await make();
      await assert.rejects(machine.files.mountMemory(join(machine.root, 'none'), undefined, signal));
    });
  });
}
