import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, it, test } from 'node:test';
import { SimulatedCgroupHost } from '../../../test/fakes/simulated-cgroup-host.ts';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { collectLogs, detectCgroupLayout } from '../../lib/index.ts';
import { CgroupManager } from './cgroup-manager.ts';
import { hostProcesses, SystemCgroups, type SystemCgroupsDeps } from './system-cgroups.ts';

const { signal } = new AbortController();

const ownPid = 50;
const kernelThread = 2;
const inContainer = 60;

async function aMachine(places: Pick<SystemCgroupsDeps, 'own' | 'system'>) {
  const host = new SimulatedCgroupHost({ mode: 'hybrid' });
  const clock = new VirtualClock();
  const layout = await detectCgroupLayout(host);
  const cgroups = new CgroupManager({ host, layout, driver: 'cgroupfs', clock });
  const trees = layout.version === 1 ? [...layout.controllers.values(), layout.unified ?? ''] : [layout.root];
  for (const pid of [1, kernelThread, ownPid, inContainer, 70])
    for (const tree of new Set(trees)) host.attach(pid, tree);
  const processes = {
    ownPid,
    isKernelThread: async (pid: number) => pid === kernelThread,
    isOfHost: async (pid: number) => pid !== inContainer,
  };
  const { logger, records } = collectLogs(clock);
  const mover = new SystemCgroups({ ...places, cgroups, processes, clock, logger });
  const members = async (...name: string[]) => (await cgroups.members(name)).toSorted((a, b) => a - b);
  return { host, clock, mover, members, records, trees };
}

test('reads the PID, the cgroups and the PID namespace of processes from the kernel', async (t) => {
  const proc = await mkdtemp(join(tmpdir(), 'klg-proc-'));
  t.after(() => rm(proc, { recursive: true }));
  const links = { '1/ns/pid': 'pid:[1]', '7/ns/pid': 'pid:[1]', '7/exe': '/bin/x', '8/ns/pid': 'pid:[2]' };
  for (const [path, target] of Object.entries(links)) {
    await mkdir(dirname(join(proc, path)), { recursive: true });
    await symlink(target, join(proc, path));
  }
  const { isKernelThread, isOfHost } = hostProcesses(proc);
  const seen = async (pid: number) => [await isKernelThread(pid), await isOfHost(pid)];
  assert.deepEqual(await Promise.all([7, 8, 9].map(seen)), [
    [false, true],
    [true, false],
    [true, false],
  ]);
});

describe('system processes', () => {
  it('moves processes to the system cgroup, except kernel threads, container processes and PID 1', async () => {
    const { mover, members } = await aMachine({ system: '/system' });
    await mover.move(signal);
    assert.deepEqual(await members('system'), [ownPid, 70]);
    assert.deepEqual(await members(), [1, kernelThread, inContainer]);
  });

  it('does not move processes that are outside the root cgroup in at least one tree', async () => {
    const { host, mover, members, trees } = await aMachine({ system: '/system' });
    const memory = trees.find((tree) => tree.endsWith('/memory')) ?? '';
    await host.mkdir(`${memory}/mine`);
    host.attach(70, `${memory}/mine`);
    await mover.move(signal);
    assert.deepEqual(await members('system'), [ownPid]);
  });

  it('moves the kubelet to its configured cgroup, and repeats this after another process has moved the kubelet', async () => {
    const { host, clock, mover, members, trees } = await aMachine({ own: '/kube/kubeling' });
    const stop = new AbortController();
    const running = mover.run(stop.signal);
    await clock.advance(1);
    assert.deepEqual(await members('kube', 'kubeling'), [ownPid]);
    for (const tree of new Set(trees)) host.attach(ownPid, tree);
    await clock.advance(60_000);
    assert.deepEqual(await members('kube', 'kubeling'), [ownPid]);
    stop.abort();
    await running;
    assert.equal(clock.pendingTimers, 0);
  });
});
