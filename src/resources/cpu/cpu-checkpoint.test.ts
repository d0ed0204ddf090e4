import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { podUid } from '../../pods/index.ts';
import { parseCpuSet } from './cpu-set.ts';
import { decodeCpuCheckpoint, encodeCpuCheckpoint } from './cpu-state.ts';

describe('cpu_manager_state', () => {
  const state = { defaultCpuSet: parseCpuSet('4-6'), assignments: new Map() };

  it('cpu_manager_state has the checksum of the Go kubelet', () => {
    assert.equal(
      encodeCpuCheckpoint({ policyName: 'none', state }),
      '{"policyName":"none","defaultCpuSet":"4-6","checksum":354655845}',
    );
  });

  it('cpu_manager_state is read back as written', () => {
    const assignments = new Map([
      [podUid('pod-b'), new Map([['c2', parseCpuSet('1,3')]])],
      [podUid('pod-a'), new Map([['c1', parseCpuSet('7-9')]])],
    ]);
    const checkpoint = { policyName: 'static', state: { ...state, assignments } };
    const text = encodeCpuCheckpoint(checkpoint);
    assert.deepEqual(decodeCpuCheckpoint(text), checkpoint);
    assert.match(text, /"entries":\{"pod-a":\{"c1":"7-9"\},"pod-b":\{"c2":"1,3"\}\}/);
  });

  it('cpu_manager_state is rejected after any change or truncation', () => {
    const text = encodeCpuCheckpoint({ policyName: 'static', state });
    assert.throws(() => decodeCpuCheckpoint(text.replace('4-6', '4-7')), /checksum does not match/);
    assert.throws(() => decodeCpuCheckpoint(text.slice(0, -5)));
    for (const other of ['[]', 'null', '3', '{}', '{"policyName":"static"}'])
      assert.throws(() => decodeCpuCheckpoint(other), Error, other);
  });

  it('cpu_manager_state is accepted without a checksum, as in old files', () => {
    const text = '{"policyName":"static","defaultCpuSet":"0-3","checksum":0}';
    assert.deepEqual([...decodeCpuCheckpoint(text).state.defaultCpuSet], [0, 1, 2, 3]);
  });
});
