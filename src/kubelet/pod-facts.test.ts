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

describe('facts about pods', () => {
  it('has a pod as its worker has it only while a source wants it', () => {
    const [wanted, worked] = [podOf(), podOf()];
    assert.equal(factsOf({ wanted, worked }).workedOn(uid), worked);
    assert.equal(factsOf({ worked }).workedOn(uid), undefined);
    assert.equal(factsOf({ wanted }).workedOn(uid), undefined);
  });

  it('knows a pod from its worker first, then from its source', () => {
    const [wanted, worked] = [podOf(), podOf()];
    assert.equal(factsOf({ wanted, worked }).known(uid), worked);
    assert.equal(factsOf({ worked }).known(uid), worked);
    assert.equal(factsOf({ wanted }).known(uid), wanted);
    assert.equal(factsOf({}).known(uid), undefined);
  });

  it('counts a pod as active until it is over, and one that is being ended until it is gone', () => {
    const wanted = podOf();
    assert.deepEqual(factsOf({ wanted }).activePods(), [wanted]);
    assert.deepEqual(factsOf({ wanted, phase: 'Failed' }).activePods(), []);
    assert.deepEqual(factsOf({ wanted: podOf({ phase: 'Succeeded' }) }).activePods(), []);
    assert.deepEqual(factsOf({ wanted, phase: 'Failed', worker: 'told-to-end' }).activePods(), [wanted]);
    assert.deepEqual(factsOf({ wanted, worker: 'done' }).activePods(), []);
  });

  it('takes a pod for ended once it is over or told to end', () => {
    assert.equal(factsOf({ phase: 'Running' }).hasEnded(uid), false);
    assert.equal(factsOf({ phase: 'Succeeded' }).hasEnded(uid), true);
    assert.equal(factsOf({ phase: 'Running', worker: 'told-to-end' }).hasEnded(uid), true);
  });

  it('shows the status a pod has here, or else the one it came with', () => {
    const wanted = podOf({ phase: 'Pending' });
    const phases = (facts: PodFacts) => facts.withStatus().map(({ status }) => status.phase);
    assert.deepEqual(phases(factsOf({ wanted })), ['Pending']);
    assert.deepEqual(phases(factsOf({ wanted, phase: 'Running' })), ['Running']);
  });
});
