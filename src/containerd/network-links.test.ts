import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, beforeEach, describe, it } from 'node:test';
import { KubelingError } from '../lib/index.ts';
import type { Run } from './machine.ts';
import { removeBridge } from './network-links.ts';

const signal = new AbortController().signal;
const created: string[] = [];
let sysDir = '';
let calls: string[] = [];
beforeEach(async () => {
  sysDir = await mkdtemp(join(tmpdir(), 'links-'));
  created.push(sysDir);
  calls = [];
  for (const port of ['veth1', 'veth2'])
    await mkdir(join(sysDir, 'class/net/klg1/brif', port), { recursive: true });
  await mkdir(join(sysDir, 'class/net/veth2'), { recursive: true });
});
after(async () => {
  for (const path of created) await rm(path, { recursive: true });
});

const run: Run = async (file, args) => {
  calls.push([file, ...args].join(' '));
  if (args.at(-1)?.startsWith('veth')) throw new KubelingError('COMMAND_FAILED', `${args.at(-1)} is busy`);
  return { end: { kind: 'exited', code: 0 }, stdout: '', stderr: '', droppedBytes: 0 };
};

describe('removeBridge', () => {
  it('deletes attached interfaces, then the bridge, and reports only those that remain', async () => {
    const { removed, problems } = await removeBridge('klg1', { run, ip: '/sbin/ip', sysDir }, signal);
    assert.deepEqual(calls, [
      '/sbin/ip link del dev veth1',
      '/sbin/ip link del dev veth2',
      '/sbin/ip link del dev klg1',
    ]);
    assert.deepEqual(removed, ['klg1']);
    assert.deepEqual(problems, ['veth2 is busy']);
  });

  it('does nothing if the bridge does not exist, even without the program `ip`', async () => {
    assert.deepEqual(await removeBridge('klg2', { run, ip: undefined, sysDir }, signal), {
      removed: [],
      problems: [],
    });
  });

  it('reports the missing program and the interfaces to delete', async () => {
    const { problems } = await removeBridge('klg1', { run, ip: undefined, sysDir }, signal);
    assert.deepEqual(problems, [
      'Cannot delete the interfaces veth1, veth2, klg1 as the program ip is missing (package iproute2)',
    ]);
    assert.deepEqual(calls, []);
  });
});
