import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { observedOf, podOf } from '../../test/fakes/pod-sketch.ts';
import type { PodSource } from '../pods/index.ts';
import { podUid } from '../pods/index.ts';
import { RestoredPods } from './restored-pods.ts';

const uid = podUid('uid-1');

interface Known {
  readonly source?: PodSource;
  readonly ready?: readonly PodSource[];
  readonly configured?: readonly PodSource[];
  readonly runtime?: 'running' | 'exited' | 'silent';
  readonly boot?: 'this' | 'another';
  readonly end?: { readonly phase: string; readonly reason: string };
  /**
   * Collects 'continues' for each delivered pod that continues, and 'restarts' for each delivered pod that
   * starts from scratch.
   */
  readonly lives?: string[];
}

const ended = {
  startTime: '2026-01-01T00:00:00Z',
  phase: 'Failed',
  reason: 'DeadlineExceeded',
  conditions: [],
};

function earlier({
  source,
  ready = [],
  configured = ['file', 'api'],
  runtime = 'running',
  boot = 'this',
  lives = [],
  end,
}: Known) {
  const notes = source && { source, name: 'web', namespace: 'default', boot, ...(end && { end }) };
  return new RestoredPods({
    checkpoints: {
      get: () => notes,
      observeSource: (_pod, life) => lives.push(life),
      statusOf: () => ended,
      recordFinished: async () => {},
      recordSourceRemoved: async () => {},
      secondsLeft: () => undefined,
      wasAdmittedInThisBoot: () => notes?.boot === 'this',
    },
    observed: () => {
      if (runtime === 'silent') throw new Error('the runtime did not respond');
      return observedOf(uid, runtime);
    },
    sources: {
      allReady: () => configured.every((each) => ready.includes(each)),
      isReady: (each) => ready.includes(each),
      readiness: () => configured.map((each) => ({ source: each })),
    },
  });
}

describe('areSourcesReadyFor decides whether a pod may be deleted', () => {
  it('requires only the recorded source of a pod to be ready', () => {
    assert.equal(earlier({ source: 'file', ready: ['file'] }).areSourcesReadyFor(uid), true);
    assert.equal(earlier({ source: 'api', ready: ['file'] }).areSourcesReadyFor(uid), false);
    assert.equal(earlier({ source: 'file', ready: ['api'] }).areSourcesReadyFor(uid), false);
  });

  it('requires all sources to be ready when the source of a pod is not recorded', () => {
    assert.equal(earlier({ ready: ['file'] }).areSourcesReadyFor(uid), false);
    assert.equal(earlier({ ready: ['file', 'api'] }).areSourcesReadyFor(uid), true);
  });

  it('does not wait for a recorded source that is no longer configured', () => {
    assert.equal(earlier({ source: 'http', ready: ['file'] }).areSourcesReadyFor(uid), true);
  });
});

describe('a pod that a source delivers after a kubelet restart', () => {
  it('treats the pod as restored if it was admitted in this boot and its sandbox exists', () => {
    const pod = podOf();
    assert.equal(earlier({ source: 'file' }).standing(pod), 'restored');
    assert.equal(earlier({ source: 'file', boot: 'another' }).standing(pod), 'new');
    assert.equal(earlier({ source: 'file', runtime: 'exited' }).standing(pod), 'new');
    assert.equal(earlier({ source: 'file', runtime: 'silent' }).standing(pod), 'new');
    assert.equal(earlier({}).standing(pod), 'new');
  });

  it('gives a static pod its recorded status only in the first list of its source', () => {
    const lives: string[] = [];
    const pod = podOf({ source: 'file' });
    assert.deepEqual(earlier({ lives }).restore(pod), { ...pod, status: ended });
    assert.deepEqual(earlier({ lives, ready: ['file'] }).restore(pod), pod);
    assert.deepEqual(earlier({ lives }).restore(podOf()), podOf());
    assert.deepEqual(lives, ['continues', 'restarts', 'restarts']);
  });

  it('treats a pod killed by this node as finished, even if the API server does not have that status', () => {
    const lives: string[] = [];
    const end = { phase: 'Failed', reason: 'Evicted' };
    const { phase, reason } = earlier({ source: 'api', end, lives }).restore(podOf()).status;
    assert.deepEqual({ phase, reason }, end);
    assert.deepEqual(earlier({ source: 'api', lives }).restore(podOf()), podOf());
    assert.deepEqual(lives, ['continues', 'restarts']);
  });
});
