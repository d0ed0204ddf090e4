import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { aPod } from '../../../test/fakes/pods.ts';
import type { PodStatus } from '../../kinds/index.ts';
import { instant } from '../../lib/index.ts';
import { type MergedStatus, mergeStatus, sameInApi } from './merge-status.ts';
import { newestCopy } from './status-writer.ts';
import { plainStatus } from './sync-status.ts';

const now = instant(Date.UTC(2026, 5, 1));
const earlier = '2026-01-01T00:00:00Z';

function merge(api: PodStatus, ours: PodStatus, who: 'may-run' | 'ended' = 'ended'): MergedStatus {
  return mergeStatus({ pod: aPod({ status: api }), ours, mayRun: who === 'may-run', now });
}

const is = (type: string, status = 'True', lastTransitionTime = earlier) => ({
  type,
  status,
  lastTransitionTime,
});

describe('merging a pod status of the kubelet into the one in the API', () => {
  it('takes conditions of other components from the API and those of the kubelet from the kubelet', () => {
    const api = { conditions: [is('Ready'), is('theirs')] };
    const { conditions } = merge(api, { conditions: [is('Ready', 'False'), is('theirs', 'False')] }).status;
    assert.deepEqual(conditions, [is('theirs'), is('Ready', 'False')]);
  });

  it('does not report phase, reason and message of a terminated pod while its containers may run', () => {
    const api = { phase: 'Running', message: 'fine' };
    const ours = { phase: 'Failed', reason: 'Evicted', message: 'no', qosClass: 'Burstable' };
    const held = merge(api, ours, 'may-run');
    assert.deepEqual(
      [held.isHeld, held.status.phase, held.status.reason, held.status.message, held.status.qosClass],
      [true, 'Running', undefined, 'fine', 'Burstable'],
    );
    const reported = merge(api, ours);
    assert.deepEqual(
      [reported.isHeld, reported.status.phase, reported.status.reason],
      [false, 'Failed', 'Evicted'],
    );
  });

  it('never reverts a terminal phase in the API, and never reports a pod with a terminal phase as ready', () => {
    const api = { phase: 'Failed', reason: 'Gone', conditions: [is('ContainersReady', 'False')] };
    const ours = {
      phase: 'Running',
      conditions: [is('Ready'), is('ContainersReady')],
      containerStatuses: [],
    };
    const { status } = merge(api, ours, 'may-run');
    assert.deepEqual([status.phase, status.reason], ['Failed', 'Gone']);
    assert.deepEqual(
      status.conditions?.map(({ type, status: value, reason, lastTransitionTime }) => ({
        type,
        value,
        reason,
        lastTransitionTime,
      })),
      [
        { type: 'Ready', value: 'False', reason: 'PodFailed', lastTransitionTime: '2026-06-01T00:00:00Z' },
        { type: 'ContainersReady', value: 'False', reason: 'PodFailed', lastTransitionTime: earlier },
      ],
    );
  });

  it('replaces a DisruptionTarget condition set by another component only when the pod has terminated', () => {
    const theirs = { ...is('DisruptionTarget'), reason: 'EvictionByEvictionAPI' };
    const ours = { ...is('DisruptionTarget'), reason: 'TerminationByKubelet' };
    const reasonOf = ({ status }: MergedStatus) => status.conditions?.map(({ reason }) => reason);
    const api = { phase: 'Running', conditions: [theirs] };
    assert.deepEqual(reasonOf(merge(api, { phase: 'Running', conditions: [ours] })), [theirs.reason]);
    assert.deepEqual(reasonOf(merge(api, { phase: 'Failed', conditions: [ours] }, 'may-run')), [
      theirs.reason,
    ]);
    assert.deepEqual(reasonOf(merge(api, { phase: 'Failed', conditions: [ours] })), [ours.reason]);
  });

  it('does not change the resource claim statuses in the API', () => {
    const api = { resourceClaimStatuses: [{ name: 'a' }] };
    assert.deepEqual(merge(api, { resourceClaimStatuses: [] }).status.resourceClaimStatuses, [{ name: 'a' }]);
  });
});

describe('the canonical form of a pod status', () => {
  const same = (a: unknown, b: unknown) =>
    sameInApi(plainStatus(a as PodStatus), plainStatus(b as PodStatus));

  it('treats a status as equal when the API server returns it in another form', () => {
    const container = { name: 'a', ready: false, restartCount: 0 };
    const ours = {
      conditions: [is('Ready'), is('theirs')],
      podIPs: [],
      containerStatuses: [
        { ...container, lastState: undefined, resources: { requests: { cpu: '1000m', memory: '1024Ki' } } },
      ],
    };
    const theirs = {
      message: '',
      conditions: [{ ...is('theirs'), lastProbeTime: null }, is('Ready')],
      containerStatuses: [
        { ...container, imageID: '', lastState: {}, resources: { requests: { cpu: '1', memory: '1Mi' } } },
      ],
    };
    assert.ok(same(ours, theirs));
  });

  it('distinguishes waiting from running when both states have no further details', () => {
    const state = (name: string) => ({ containerStatuses: [{ name: 'a', state: { [name]: {} } }] });
    assert.ok(!same(state('waiting'), state('running')));
  });

  it('distinguishes a container with empty resources from one with unset resources', () => {
    const container = (fields: object) => ({ containerStatuses: [{ name: 'a', ...fields }] });
    assert.deepEqual(plainStatus(container({ resources: { requests: {} } }) as unknown as PodStatus), {
      containerStatuses: [{ name: 'a', resources: {} }],
    });
    assert.ok(!same(container({ resources: {} }), container({})));
  });

  it('treats statuses with a different order of addresses as different', () => {
    assert.ok(
      !same(
        { podIPs: [{ ip: '10.0.0.1' }, { ip: 'fd::1' }] },
        { podIPs: [{ ip: 'fd::1' }, { ip: '10.0.0.1' }] },
      ),
    );
  });
});

describe('the newer of two copies of an API object', () => {
  const copy = (resourceVersion: string, uid?: string) =>
    aPod({ metadata: { resourceVersion, ...(uid !== undefined && { uid: uid as never }) } });

  it('compares resource versions as numbers and otherwise uses the copy of the watch', () => {
    const watched = copy('99');
    assert.equal(newestCopy(watched, copy('100')).metadata.resourceVersion, '100');
    assert.equal(newestCopy(watched, copy('98')), watched);
    assert.equal(newestCopy(watched, copy('99')), watched);
    assert.equal(newestCopy(watched, copy('later')), watched);
    assert.equal(newestCopy(watched, copy('100', 'other')), watched);
    assert.equal(newestCopy(watched, undefined), watched);
  });
});
