import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { aPod } from '../../test/fakes/pods.ts';
import { isNotedEnd, notedEnd, withNotedEnd } from './pod-end.ts';

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

describe('how a pod ended that its node has ended', () => {
  it('is noted with its reason, and not before it has', () => {
    const { conditions: _all, ...end } = evicted;
    assert.deepEqual(notedEnd(evicted), { ...end, disruption });
    assert.deepEqual(notedEnd({ ...evicted, conditions: [] }), end);
    assert.equal(notedEnd({ ...evicted, phase: 'Running' }), undefined);
    assert.equal(notedEnd({}), undefined);
  });

  it('counts more than what the API still says, and takes nothing of others away', () => {
    const noted = notedEnd(evicted) ?? assert.fail();
    const gate = { type: 'example.com/gate', status: 'True' };
    const running = aPod({ status: { phase: 'Running', hostIP: '10.0.0.1', conditions: [gate] } });
    assert.deepEqual(withNotedEnd(running, noted).status, {
      phase: 'Failed',
      reason: 'Evicted',
      message: 'low',
      hostIP: '10.0.0.1',
      conditions: [gate, disruption],
    });
  });

  it('comes back from a file as it was written, and is none when it is anything else', () => {
    const noted = notedEnd(evicted);
    assert.ok(isNotedEnd(JSON.parse(JSON.stringify(noted))));
    const bad = [
      7,
      {},
      { phase: 'Running' },
      { phase: 'Failed', reason: 7 },
      { phase: 'Failed', disruption: { ...disruption, type: 'Ready' } },
      { phase: 'Failed', disruption: { ...disruption, message: 7 } },
    ];
    assert.deepEqual(bad.map(isNotedEnd), Array(bad.length).fill(false));
  });
});
