import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { aPod } from '../../test/fakes/pods.ts';
import { isPodEnd, podEnd, withPodEnd } from './pod-end.ts';

const disruption = {
  type: 'DisruptionTarget',
  status: 'True',
  reason: 'TerminationByKubelet',
  message: 'low',
  lastTransitionTime: '2026-01-01T00:00:00Z',
  observedGeneration: 3,
};
const ready = { type: 'Ready', status: 'False' };
const evicted = { phase: 'Failed', reason: 'Evicted', message: 'low', conditions: [ready, disruption] };

describe('final status of a pod that this node killed', () => {
  it('records the final status with its reason, once the pod has finished', () => {
    const { conditions: _all, ...end } = evicted;
    assert.deepEqual(podEnd(evicted), { ...end, disruption });
    assert.deepEqual(podEnd({ ...evicted, conditions: [] }), end);
    assert.equal(podEnd({ ...evicted, phase: 'Running' }), undefined);
    assert.equal(podEnd({}), undefined);
  });

  it('replaces the status from the API, and keeps unrelated conditions', () => {
    const noted = podEnd(evicted) ?? assert.fail();
    const gate = { type: 'example.com/gate', status: 'True' };
    const running = aPod({ status: { phase: 'Running', hostIP: '10.0.0.1', conditions: [gate] } });
    assert.deepEqual(withPodEnd(running, noted).status, {
      phase: 'Failed',
      reason: 'Evicted',
      message: 'low',
      hostIP: '10.0.0.1',
      conditions: [gate, disruption],
    });
  });

  it('decodes the encoded final status, and rejects invalid or additional content', () => {
    const noted = podEnd(evicted);
    assert.ok(isPodEnd(JSON.parse(JSON.stringify(noted))));
    const bad = [
      7,
      {},
      { phase: 'Running' },
      { phase: 'Failed', reason: 7 },
      { phase: 'Failed', disruption: { ...disruption, type: 'Ready' } },
      { phase: 'Failed', disruption: { ...disruption, message: 7 } },
    ];
    assert.deepEqual(bad.map(isPodEnd), Array(bad.length).fill(false));
  });
});
