import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { SimulatedCgroupHost } from '../../../test/fakes/simulated-cgroup-host.ts';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { detectCgroupLayout } from '../../lib/index.ts';
import { CgroupManager } from './cgroup-manager.ts';
import { type AllocatableEvent, enforceReservedCgroups, reservedCgroups } from './reserved-cgroups.ts';

const { signal } = new AbortController();

const config = {
  systemReserved: { cpu: '500m', memory: '512Mi', pid: '100', 'ephemeral-storage': '1Gi' },
  kubeReserved: { memory: '256Mi' },
  systemReservedCgroup: '/system.slice',
  kubeReservedCgroup: '/kube/own',
  enforceNodeAllocatable: ['pods', 'system-reserved', 'kube-reserved'],
};

async function aMachine() {
  const host = new SimulatedCgroupHost({ mode: 'v2' });
  const layout = await detectCgroupLayout(host);
  const cgroups = new CgroupManager({ host, layout, driver: 'cgroupfs', clock: new VirtualClock() });
  const reported: AllocatableEvent[] = [];
  const tell = (event: AllocatableEvent) => void reported.push(event);
  const read = async (path: string) => (await host.read(`/sys/fs/cgroup${path}`)).trim();
  return { host, cgroups, told: reported, tell, read };
}

describe('reserved cgroups', () => {
  it('reserved cgroups get all limits, only the compressible ones, or none, as configured', () => {
    const values = (enforceNodeAllocatable: readonly string[]) =>
      reservedCgroups({ ...config, enforceNodeAllocatable }).map((each) => [each.path, each.values]);
    assert.deepEqual(values(['pods', 'system-reserved', 'kube-reserved']), [
      ['/system.slice', { cpuShares: 512, memoryBytes: 536_870_912, pidsLimit: 100 }],
      ['/kube/own', { memoryBytes: 268_435_456 }],
    ]);
    assert.deepEqual(values(['pods', 'system-reserved-compressible']), [
      ['/system.slice', { cpuShares: 512 }],
    ]);
    assert.deepEqual(values(['pods']), []);
    assert.deepEqual(values(['none']), []);
  });

  it('sets the limits of reserved cgroups and reports them as events', async () => {
    const { cgroups, told, tell, read } = await aMachine();
    for (const name of [['system.slice'], ['kube', 'own']]) await cgroups.create(name, {}, signal);
    await enforceReservedCgroups(cgroups, reservedCgroups(config), tell, signal);
    const held = ['/system.slice/memory.max', '/system.slice/cpu.weight', '/kube/own/memory.max'];
    assert.deepEqual(await Promise.all(held.map(read)), ['536870912', '20', '268435456']);
    assert.equal(await read('/kube/own/cpu.weight'), '100', 'an unreserved resource is not limited');
    assert.deepEqual(
      told.map(({ type, reason, message }) => `${type} ${reason} ${message}`),
      [
        'Normal NodeAllocatableEnforced Updated limits on system reserved cgroup /system.slice',
        'Normal NodeAllocatableEnforced Updated limits on kube reserved cgroup /kube/own',
      ],
    );
  });

  it('a missing reserved cgroup prevents the start of the node', async () => {
    const { cgroups, told, tell } = await aMachine();
    await assert.rejects(enforceReservedCgroups(cgroups, reservedCgroups(config), tell, signal), {
      code: 'RESERVED_CGROUP',
      message:
        /^Failed to enforce System Reserved Cgroup Limits on "\/system\.slice": .*must name an existing cgroup/,
    });
    assert.deepEqual(
      told.map(({ reason }) => reason),
      ['FailedNodeAllocatableEnforcement'],
    );
  });
});
