import assert from 'node:assert/strict';
import { test } from 'node:test';
import { plainSettings } from '../../test/fakes/node-world.ts';
import { parseQuantity } from '../lib/index.ts';
import { type AmountFacts, isExtended, nodeAmounts } from './amounts.ts';

const gi = 1024 ** 3;
const machine = {
  milliCpu: 4_000,
  memory: 8 * gi,
  ephemeralStorage: 100 * gi,
  hugePages: new Map<string, number>(),
  swap: 0,
};
const facts: AmountFacts = { machine, devices: undefined, before: {}, extended: 'kept' };

test('has the capacity of the machine, all of it allocatable without reservations', () => {
  const all = { cpu: '4', memory: '8Gi', pods: '110', 'ephemeral-storage': '100Gi' };
  assert.deepEqual(nodeAmounts(plainSettings, facts), { capacity: all, allocatable: all });
});

test('subtracts reservations and eviction thresholds from allocatable', () => {
  const settings = {
    ...plainSettings,
    reserved: [
      { cpu: '500m', memory: '1Gi' },
      { cpu: '100m', memory: '512Mi', 'ephemeral-storage': '1Gi' },
    ],
    hardEviction: { memory: { quantity: parseQuantity('512Mi') }, nodefs: { percent: 10 } },
  };
  const { capacity, allocatable } = nodeAmounts(settings, facts);
  assert.equal(capacity['memory'], '8Gi');
  assert.deepEqual(allocatable, { cpu: '3400m', memory: '6Gi', pods: '110', 'ephemeral-storage': '89Gi' });
});

test('prefers reservedSystemCPUs to reserved amounts of CPU', () => {
  const settings = { ...plainSettings, reserved: [{ cpu: '100m' }], reservedCpus: 2 };
  assert.equal(nodeAmounts(settings, facts).allocatable['cpu'], '2');
});

test('is never negative', () => {
  const settings = { ...plainSettings, reserved: [{ memory: '9Gi' }] };
  assert.equal(nodeAmounts(settings, facts).allocatable['memory'], '0');
});

test('counts huge pages separately, and subtracts them from memory', () => {
  const hugePages = new Map([
    ['2MB', 2 * gi],
    ['1GB', gi],
    ['64KB', 0],
  ]);
  const { capacity, allocatable } = nodeAmounts(plainSettings, {
    ...facts,
    machine: { ...machine, hugePages },
  });
  assert.equal(capacity['hugepages-2Mi'], '2Gi');
  assert.equal(capacity['hugepages-1Gi'], '1Gi');
  assert.equal(capacity['hugepages-64Ki'], '0');
  assert.equal(allocatable['memory'], '5Gi');
});

test('removes a page size that the machine no longer has', () => {
  const before = { capacity: { 'hugepages-1Gi': '4Gi' }, allocatable: { 'hugepages-1Gi': '4Gi' } };
  const { capacity, allocatable } = nodeAmounts(plainSettings, { ...facts, before });
  assert.ok(!('hugepages-1Gi' in capacity) && !('hugepages-1Gi' in allocatable));
});

test('keeps other resources, and removes those that were removed from the capacity', () => {
  const before = {
    capacity: { 'example.com/dongle': '4' },
    allocatable: { 'example.com/dongle': '4', 'example.com/gone': '1' },
  };
  const { capacity, allocatable } = nodeAmounts(plainSettings, { ...facts, before });
  assert.equal(capacity['example.com/dongle'], '4');
  assert.equal(allocatable['example.com/dongle'], '4');
  assert.ok(!('example.com/gone' in allocatable));
});

test('publishes devices of plugins, and removed ones as zero', () => {
  const devices = {
    capacity: { 'gpu.example/card': '4' },
    allocatable: { 'gpu.example/card': '3' },
    removed: ['nic.example/vf'],
  };
  const { capacity, allocatable } = nodeAmounts(plainSettings, { ...facts, devices });
  assert.deepEqual([capacity['gpu.example/card'], allocatable['gpu.example/card']], ['4', '3']);
  assert.deepEqual([capacity['nic.example/vf'], allocatable['nic.example/vf']], ['0', '0']);
});

test('forgets devices of a previous boot, but not native resources', () => {
  const before = { capacity: { 'gpu.example/card': '4', 'attachable.kubernetes.io/x': '9' } };
  const { capacity } = nodeAmounts(plainSettings, { ...facts, before, extended: 'zeroed' });
  assert.equal(capacity['gpu.example/card'], '0');
  assert.equal(capacity['attachable.kubernetes.io/x'], '9');
  assert.deepEqual(['cpu', 'a/b', 'requests.a/b', 'x.kubernetes.io/y'].map(isExtended), [
    false,
    true,
    false,
    false,
  ]);
});

test('keeps the spelling of an equal amount', () => {
  const before = { capacity: { memory: '8192Mi', cpu: '4000m' }, allocatable: { memory: '8589934592' } };
  const { capacity, allocatable } = nodeAmounts(plainSettings, { ...facts, before });
  assert.deepEqual(
    [capacity['memory'], capacity['cpu'], allocatable['memory']],
    ['8192Mi', '4000m', '8589934592'],
  );
});

test('has no capacity when the machine is unreadable, and no disk capacity when it is unmeasured', () => {
  const { capacity } = nodeAmounts(plainSettings, { ...facts, machine: undefined });
  assert.deepEqual(capacity, { cpu: '0', memory: '0', pods: '110' });
  const unmeasured = { ...machine, ephemeralStorage: undefined };
  assert.ok(!('ephemeral-storage' in nodeAmounts(plainSettings, { ...facts, machine: unmeasured }).capacity));
});
