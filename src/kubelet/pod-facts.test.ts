import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { podOf } from '../../test/fakes/pod-sketch.ts';
import { type Pod, PodManager, podUid } from '../pods/index.ts';
import { PodFacts } from './pod-facts.ts';

const uid = podUid('uid-1');

interface Known {
  readonly wanted?: Pod;
  readonly worked?: Pod;
  readonly phase?: string;
  readonly worker?: 'working' | 'told-to-end' | 'done';
}

function factsOf({ wanted, worked, phase, worker = 'working' }: Known): PodFacts {
  const pods = new PodManager();
  if (wanted !== undefined) pods.addPod(wanted);
  return new PodFacts({
    pods,
    statuses: { getPodStatus: () => (phase === undefined ? undefined : { phase }) },
    workers: {
      activePod: () => worked && { pod: worked },
      isTerminated: () => worker === 'done',
      isTerminationRequested: () => worker !== 'working',
    },
    allocated: { withAllocation: (pod) => pod },
  });
}

describe('PodFacts', () => {
  it('returns the pod of a worker only while a source has the pod', () => {
    const [expected, worked] = [podOf(), podOf()];
    assert.equal(factsOf({ wanted: expected, worked }).podOfWorker(uid), worked);
    assert.equal(factsOf({ worked }).podOfWorker(uid), undefined);
    assert.equal(factsOf({ wanted: expected }).podOfWorker(uid), undefined);
  });

  it('prefers the pod of the worker to the pod of the source', () => {
    const [expected, worked] = [podOf(), podOf()];
    assert.equal(factsOf({ wanted: expected, worked }).podOfWorkerOrSource(uid), worked);
    assert.equal(factsOf({ worked }).podOfWorkerOrSource(uid), worked);
    assert.equal(factsOf({ wanted: expected }).podOfWorkerOrSource(uid), expected);
    assert.equal(factsOf({}).podOfWorkerOrSource(uid), undefined);
  });

  it('counts a pod as active until it has finished, and a terminating pod until it is removed', () => {
    const expected = podOf();
    assert.deepEqual(factsOf({ wanted: expected }).activePods(), [expected]);
    assert.deepEqual(factsOf({ wanted: expected, phase: 'Failed' }).activePods(), []);
    assert.deepEqual(factsOf({ wanted: podOf({ phase: 'Succeeded' }) }).activePods(), []);
    assert.deepEqual(factsOf({ wanted: expected, phase: 'Failed', worker: 'told-to-end' }).activePods(), [
      expected,
    ]);
    assert.deepEqual(factsOf({ wanted: expected, worker: 'done' }).activePods(), []);
  });

  it('reports a pod as ended once it has finished or its termination was requested', () => {
    assert.equal(factsOf({ phase: 'Running' }).hasEnded(uid), false);
    assert.equal(factsOf({ phase: 'Succeeded' }).hasEnded(uid), true);
    assert.equal(factsOf({ phase: 'Running', worker: 'told-to-end' }).hasEnded(uid), true);
  });

  it('returns the current status of a pod, or the status from its source', () => {
    const expected = podOf({ phase: 'Pending' });
    const phases = (facts: PodFacts) => facts.podsWithStatus().map(({ status }) => status.phase);
    assert.deepEqual(phases(factsOf({ wanted: expected })), ['Pending']);
    assert.deepEqual(phases(factsOf({ wanted: expected, phase: 'Running' })), ['Running']);
  });
});
