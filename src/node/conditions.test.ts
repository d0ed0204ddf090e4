import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ConditionFacts, nodeConditions } from './conditions.ts';
import type { NodePressure } from './inputs.ts';

const now = '2026-01-01T00:01:00Z';
const before = '2026-01-01T00:00:00Z';
const well: ConditionFacts = {
  nodeName: 'n1',
  now,
  problems: [],
  warnings: [],
  pressures: new Set(),
  capacity: { cpu: '1', memory: '1', pods: '1' },
  requiredCapacity: ['cpu', 'memory', 'pods'],
};
const first = nodeConditions([], { ...well, now: before }).conditions;
const find = (conditions: typeof first, type: string) => conditions.find((item) => item.type === type);

test('sets four conditions on a healthy node, Ready last', () => {
  assert.deepEqual(
    first.map(({ type, status, reason, message }) => [type, status, reason, message]),
    [
      ['MemoryPressure', 'False', 'KubeletHasSufficientMemory', 'kubelet has sufficient memory available'],
      ['DiskPressure', 'False', 'KubeletHasNoDiskPressure', 'kubelet has no disk pressure'],
      ['PIDPressure', 'False', 'KubeletHasSufficientPID', 'kubelet has sufficient PID available'],
      ['Ready', 'True', 'KubeletReady', 'kubelet is posting ready status'],
    ],
  );
});

test('sets message and event of each pressure condition', () => {
  const table: readonly (readonly [NodePressure, string, string, string, string])[] = [
    [
      'memory',
      'MemoryPressure',
      'KubeletHasInsufficientMemory',
      'kubelet has insufficient memory available',
      'NodeHasInsufficientMemory',
    ],
    ['disk', 'DiskPressure', 'KubeletHasDiskPressure', 'kubelet has disk pressure', 'NodeHasDiskPressure'],
    [
      'pid',
      'PIDPressure',
      'KubeletHasInsufficientPID',
      'kubelet has insufficient PID available',
      'NodeHasInsufficientPID',
    ],
  ];
  for (const [pressure, type, reason, message, event] of table) {
    const { conditions, events } = nodeConditions(first, { ...well, pressures: new Set([pressure]) });
    const found = find(conditions, type);
    assert.deepEqual([found?.status, found?.reason, found?.message], ['True', reason, message]);
    assert.equal(found?.lastTransitionTime, now);
    assert.deepEqual(events, [{ type: 'Normal', reason: event, message: `Node n1 status is now: ${event}` }]);
  }
});

test('keeps the transition time of a condition and sends no event when nothing changes', () => {
  const { conditions, events } = nodeConditions(first, well);
  assert.deepEqual(events, []);
  for (const condition of conditions) {
    assert.equal(condition.lastTransitionTime, before);
    assert.equal(condition.lastHeartbeatTime, now);
  }
});

test('sends events for initial pressure conditions, but not for initial readiness', () => {
  const { events } = nodeConditions([], well);
  assert.deepEqual(
    events.map(({ reason }) => reason),
    ['NodeHasSufficientMemory', 'NodeHasNoDiskPressure', 'NodeHasSufficientPID'],
  );
});

test('sets Ready to False and lists each problem once in its message', () => {
  const one = nodeConditions(first, { ...well, problems: ['container runtime is down'] });
  assert.deepEqual(
    one.events.map(({ reason }) => reason),
    ['NodeNotReady'],
  );
  const ready = find(one.conditions, 'Ready');
  assert.deepEqual(
    [ready?.status, ready?.reason, ready?.message],
    ['False', 'KubeletNotReady', 'container runtime is down'],
  );
  const two = nodeConditions(one.conditions, { ...well, problems: ['a', 'b', 'a'] });
  assert.equal(find(two.conditions, 'Ready')?.message, '[a, b]');
  assert.deepEqual(two.events, []);
  const back = nodeConditions(two.conditions, well);
  assert.deepEqual(
    back.events.map(({ reason }) => reason),
    ['NodeReady'],
  );
});

test('sets Ready to False when the capacity lacks a required resource', () => {
  const { conditions } = nodeConditions(first, {
    ...well,
    capacity: { cpu: '1' },
    requiredCapacity: ['cpu', 'memory', 'ephemeral-storage'],
  });
  assert.equal(
    find(conditions, 'Ready')?.message,
    'missing node capacity for resources: memory, ephemeral-storage',
  );
});

test('appends warnings to the message of the Ready condition', () => {
  const { conditions } = nodeConditions(first, { ...well, warnings: ['no quota'] });
  const ready = find(conditions, 'Ready');
  assert.deepEqual(
    [ready?.status, ready?.message],
    ['True', 'kubelet is posting ready status. WARNING: no quota'],
  );
});

test('keeps node conditions of other owners', () => {
  const foreign = {
    type: 'NetworkUnavailable',
    status: 'False',
    reason: 'RouteCreated',
    lastHeartbeatTime: before,
  };
  const { conditions } = nodeConditions([...first, foreign], well);
  assert.deepEqual(find(conditions, 'NetworkUnavailable'), foreign);
  assert.equal(conditions.at(-1)?.type, 'Ready');
});

test('treats a condition that the control plane set to Unknown as a transition', () => {
  const lost = first.map((condition) => ({ ...condition, status: 'Unknown' }));
  const { events } = nodeConditions(lost, well);
  assert.deepEqual(
    events.map(({ reason }) => reason),
    ['NodeHasSufficientMemory', 'NodeHasNoDiskPressure', 'NodeHasSufficientPID', 'NodeReady'],
  );
});
