import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, rm, symlink, unlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, beforeEach, describe, it } from 'node:test';
import { ProcessTable } from '../lib/index.ts';
import { containerdLayout, type Layout } from './layout.ts';
import { containerdArguments, findOwnProcess, removeTraces, writePidFile } from './own-process.ts';

const created: string[] = [];
let dir = '';
let layout: Layout = containerdLayout('/unused');
let processes = new ProcessTable();
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'own-'));
  created.push(dir);
  layout = containerdLayout(join(dir, 'data'));
  processes = new ProcessTable(join(dir, 'proc'));
  await mkdir(layout.dir, { recursive: true });
  await mkdir(join(dir, 'proc/sys/kernel/random'), { recursive: true });
  await writeFile(join(dir, 'proc/sys/kernel/random/boot_id'), 'now\n');
  await addNamespaces(join(dir, 'proc/self'));
});
after(async () => {
  for (const path of created) await rm(path, { recursive: true });
});

async function addNamespaces(processDir: string): Promise<void> {
  await mkdir(join(processDir, 'ns'), { recursive: true });
  for (const name of ['user', 'pid', 'mnt']) await symlink(`${name}:[1]`, join(processDir, 'ns', name));
}

async function addProcess(pid: number, program: string, args: readonly string[]): Promise<void> {
  const at = join(dir, 'proc', String(pid));
  await mkdir(at);
  await writeFile(join(at, 'stat'), `${pid} (x) S 1 ${'0 '.repeat(17)}${pid * 10} 0`);
  await writeFile(join(at, 'cmdline'), [program, ...args, ''].join('\0'));
  await symlink(program, join(at, 'exe'));
  await writeFile(join(at, 'status'), 'Name:\tx\nUid:\t0\t0\t0\t0\n');
  await addNamespaces(at);
}

const written = (pid: number) => ({ pid, startTime: pid * 10, bootId: 'now', version: '1.7.0' });

describe('findOwnProcess', () => {
  it('returns the process that a valid PID file names', async () => {
    await addProcess(70, '/usr/bin/containerd', containerdArguments(layout));
    await writePidFile(layout, written(70));
    assert.deepEqual(await findOwnProcess(layout, processes), written(70));
  });

  it('recognizes the process after its program was replaced on disk', async () => {
    await addProcess(70, '/usr/bin/containerd (deleted)', containerdArguments(layout));
    await writePidFile(layout, written(70));
    assert.deepEqual(await findOwnProcess(layout, processes), written(70));
  });

  it('rejects a PID file of an earlier boot, of an exited process or of another process', async () => {
    await addProcess(70, '/usr/bin/containerd', ['--config', '/etc/containerd/config.toml']);
    await addProcess(71, '/usr/bin/sleep', containerdArguments(layout));
    await addProcess(72, '/usr/bin/containerd-shim-runc-v2', containerdArguments(layout));
    for (const pid of [70, 71, 72, 73]) {
      await writePidFile(layout, written(pid));
      assert.equal(await findOwnProcess(layout, processes), undefined);
    }
    await writePidFile(layout, { ...written(70), bootId: 'before' });
    assert.equal(await findOwnProcess(layout, processes), undefined);
  });

  it('finds the process by its command line when the PID file is lost or damaged', async () => {
    await addProcess(70, '/usr/bin/containerd', containerdArguments(layout));
    assert.deepEqual(await findOwnProcess(layout, processes), { ...written(70), version: '' });
    await writeFile(layout.pidFile, '{"pid":');
    assert.deepEqual(await findOwnProcess(layout, processes), { ...written(70), version: '' });
  });
});

describe('findOwnProcess without a PID file', () => {
  for (const uids of ['4242\t4242\t4242\t4242', '4242\t0\t0\t0', '0\t0\t4242\t0']) {
    it(`ignores a containerd process with the user IDs ${uids.replaceAll('\t', ' ')}`, async () => {
      await addProcess(70, '/home/user/containerd', containerdArguments(layout));
      await writeFile(join(dir, 'proc/70/status'), `Name:\tcontainerd\nUid:\t${uids}\n`);
      assert.equal(await findOwnProcess(layout, processes), undefined);
    });
  }

  for (const namespace of ['user', 'pid', 'mnt']) {
    it(`ignores a containerd process in another ${namespace} namespace`, async () => {
      await addProcess(70, '/e/containerd', containerdArguments(layout));
      await unlink(join(dir, 'proc/70/ns', namespace));
      await symlink(`${namespace}:[2]`, join(dir, 'proc/70/ns', namespace));
      assert.equal(await findOwnProcess(layout, processes), undefined);
    });
  }
});

describe('removeTraces', () => {
  it('removes the PID file and the sockets if they exist', async () => {
    for (const path of [layout.pidFile, layout.socket, layout.config]) await writeFile(path, '');
    await removeTraces(layout);
    await removeTraces(layout);
    assert.deepEqual(await readdir(layout.dir), ['config.toml']);
  });
});
