import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, beforeEach, describe, it } from 'node:test';
import { ProcessTable } from '../lib/index.ts';
import { containerdLayout, type Layout } from './layout.ts';
import { containerdArguments, findOwnProcess, removeTraces, writePidFile } from './own-process.ts';

const made: string[] = [];
let dir = '';
let layout: Layout = containerdLayout('/unused');
let processes = new ProcessTable();
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'own-'));
  made.push(dir);
  layout = containerdLayout(join(dir, 'data'));
  processes = new ProcessTable(join(dir, 'proc'));
  await mkdir(layout.dir, { recursive: true });
  await mkdir(join(dir, 'proc/sys/kernel/random'), { recursive: true });
  await writeFile(join(dir, 'proc/sys/kernel/random/boot_id'), 'now\n');
});
after(async () => {
  for (const path of made) await rm(path, { recursive: true });
});

async function addProcess(pid: number, program: string, args: readonly string[]): Promise<void> {
  const at = join(dir, 'proc', String(pid));
  await mkdir(at);
  await writeFile(join(at, 'stat'), `${pid} (x) S 1 ${'0 '.repeat(17)}${pid * 10} 0`);
  await writeFile(join(at, 'cmdline'), [program, ...args, ''].join('\0'));
  await symlink(program, join(at, 'exe'));
}

const written = (pid: number) => ({ pid, startTime: pid * 10, bootId: 'now', version: '1.7.0' });

describe('findOwnProcess', () => {
  it('believes a pid file that names the very process', async () => {
    await addProcess(70, '/usr/bin/containerd', containerdArguments(layout));
    await writePidFile(layout, written(70));
    assert.deepEqual(await findOwnProcess(layout, processes), written(70));
  });

  it('knows it again after its program was replaced on disk', async () => {
    await addProcess(70, '/usr/bin/containerd (deleted)', containerdArguments(layout));
    await writePidFile(layout, written(70));
    assert.deepEqual(await findOwnProcess(layout, processes), written(70));
  });

  it('does not believe one from before a boot, or from a process that is gone or another', async () => {
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

  it('finds it by its command line when the pid file is lost or damaged', async () => {
    await addProcess(70, '/usr/bin/containerd', containerdArguments(layout));
    assert.deepEqual(await findOwnProcess(layout, processes), { ...written(70), version: '' });
    await writeFile(layout.pidFile, '{"pid":');
    assert.deepEqual(await findOwnProcess(layout, processes), { ...written(70), version: '' });
  });
});

describe('removeTraces', () => {
  it('removes the pid file and the sockets, and does not mind when there are none', async () => {
    for (const path of [layout.pidFile, layout.socket, layout.config]) await writeFile(path, '');
    await removeTraces(layout);
    await removeTraces(layout);
    assert.deepEqual(await readdir(layout.dir), ['config.toml']);
  });
});
