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

test('the node has what the machine has, and without reservations pods may have it all', () => {
  const all = { cpu: '4', memory: '8Gi', pods: '110', 'ephemeral-storage': '100Gi' };
  assert.deepEqual(nodeAmounts(plainSettings, facts), { capacity: all, allocatable: all });
});

test('what is reserved and what eviction defends is not for pods', () => {
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

test('CPUs that are reserved by number go before amounts of CPU', () => {
  const settings = { ...plainSettings, reserved: [{ cpu: '100m' }], reservedCpus: 2 };
  assert.equal(nodeAmounts(settings, facts).allocatable['cpu'], '2');
});

test('nothing is ever less than nothing', () => {
  const settings = { ...plainSettings, reserved: [{ memory: '9Gi' }] };
  assert.equal(nodeAmounts(settings, facts).allocatable['memory'], '0');
});

test('huge pages have their own amounts, and are no memory for anything else', () => {
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

test('a size of page that the machine no longer has goes from both lists', () => {
  const before = { capacity: { 'hugepages-1Gi': '4Gi' }, allocatable: { 'hugepages-1Gi': '4Gi' } };
  const { capacity, allocatable } = nodeAmounts(plainSettings, { ...facts, before });
  assert.ok(!('hugepages-1Gi' in capacity) && !('hugepages-1Gi' in allocatable));
});

test('resources of others stay, and those that were taken out of the capacity go', () => {
  const before = {
    capacity: { 'example.com/dongle': '4' },
    allocatable: { 'example.com/dongle': '4', 'example.com/gone': '1' },
  };
  const { capacity, allocatable } = nodeAmounts(plainSettings, { ...facts, before });
  assert.equal(capacity['example.com/dongle'], '4');
  assert.equal(allocatable['example.com/dongle'], '4');
  assert.ok(!('example.com/gone' in allocatable));
});

test('devices of plugins are told, and those that went are told as none', () => {
  const devices = {
    capacity: { 'gpu.example/card': '4' },
    allocatable: { 'gpu.example/card': '3' },
    removed: ['nic.example/vf'],
  };
  const { capacity, allocatable } = nodeAmounts(plainSettings, { ...facts, devices });
  assert.deepEqual([capacity['gpu.example/card'], allocatable['gpu.example/card']], ['4', '3']);
  assert.deepEqual([capacity['nic.example/vf'], allocatable['nic.example/vf']], ['0', '0']);
});

test('devices of an earlier life of the machine are forgotten, resources of Kubernetes are not', () => {
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

test('the same amount keeps the spelling it has', () => {
  const before = { capacity: { memory: '8192Mi', cpu: '4000m' }, allocatable: { memory: '8589934592' } };
  const { capacity, allocatable } = nodeAmounts(plainSettings, { ...facts, before });
  assert.deepEqual(
    [capacity['memory'], capacity['cpu'], allocatable['memory']],
    ['8192Mi', '4000m', '8589934592'],
  );
});

test('a machine that does not tell has nothing, and a disk nobody measured is missing', () => {
  const { capacity } = nodeAmounts(plainSettings, { ...facts, machine: undefined });
  assert.deepEqual(capacity, { cpu: '0', memory: '0', pods: '110' });
  const unmeasured = { ...machine, ephemeralStorage: undefined };
  assert.ok(!('ephemeral-storage' in nodeAmounts(plainSettings, { ...facts, machine: unmeasured }).capacity));
});
