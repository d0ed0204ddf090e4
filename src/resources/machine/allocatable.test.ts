import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { formatQuantity } from '../../lib/index.ts';
import { allocatableOf } from './allocatable.ts';

const settings = {
  capacity: { milliCpu: 4_000, memoryBytes: 1_000, pids: 0 },
  reserved: { milliCpu: 500, memoryBytes: 100, pids: 0 },
};
const nodeWith = (allocatable: Readonly<Record<string, string>>) => ({
  metadata: { name: 'box' },
  status: { allocatable },
});
const written = (node: Parameters<typeof allocatableOf>[1]) =>
  Object.fromEntries(
    Array.from(allocatableOf(settings, node), ([name, amount]) => [name, formatQuantity(amount)]),
  );

describe('the allocatable resources', () => {
  it('without a Node object, allocatable is the capacity minus the reservations', () => {
    assert.deepEqual(written(undefined), { cpu: '3500m', memory: '900' });
  });

  it('without a Node object, allocatable excludes the reservations even if they are not enforced on pods', () => {
    const nothing = { milliCpu: 0, memoryBytes: 0 };
    const kept = { ...settings, reserved: nothing, withheld: { milliCpu: 1_000, memoryBytes: 300 } };
    const [cpu, memory] = ['cpu', 'memory'].map((name) => allocatableOf(kept, undefined).get(name));
    assert.deepEqual([cpu && formatQuantity(cpu), memory && formatQuantity(memory)], ['3', '700']);
  });

  it('with a Node object, allocatable is taken from it, including ephemeral storage', () => {
    const said = { cpu: '3', memory: '800', 'ephemeral-storage': '70Gi' };
    assert.deepEqual(written(nodeWith(said)), said);
    assert.deepEqual(written(nodeWith({ memory: '800' })), { cpu: '3500m', memory: '800' });
  });
});
