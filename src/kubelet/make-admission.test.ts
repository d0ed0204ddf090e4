import assert from 'node:assert/strict';
import { test } from 'node:test';
import { aPod } from '../../test/fakes/pods.ts';
import { VirtualClock } from '../../test/fakes/virtual-clock.ts';
import { settings } from '../../test/simulation/kubelet-life.ts';
import { collectLogs, MetricRegistry } from '../lib/index.ts';
import { type Pod, podUid } from '../pods/index.ts';
import type { Judgement } from '../resources/index.ts';
import { makeAdmission } from './make-admission.ts';

interface Situation {
  readonly others?: readonly Pod[];
  readonly standing?: 'new' | 'restored';
  readonly strictGroups?: boolean;
  readonly isShuttingDown?: boolean;
}

/** A node of a cluster whose API nobody has reached yet. */
const unreached = { node: () => undefined, fetchNode: () => Promise.reject(new Error('nobody answers')) };

/** Of 4 cores, and 10 pods at most. */
function admission(cluster: typeof unreached | undefined, situation: Situation = {}) {
  const { others = [], standing = 'new', strictGroups = true, isShuttingDown = false } = situation;
  const clock = new VirtualClock();
  const deps = {
    clock,
    logger: collectLogs(clock).logger,
    metrics: new MetricRegistry({ onError: (error) => assert.fail(String(error)) }),
    cluster,
  };
  const parts = {
    workers: () => ({ queries: { isPodTerminationRequested: () => false } }),
    standing: () => standing,
    active: () => others,
    abilities: () => ({ strictGroups }),
    isShuttingDown: () => isShuttingDown,
    wasAdmitted: () => false,
    pressures: () => [],
  };
  const hugePages = new Map([['2MB', 64 * 2 ** 20]]);
  const nodeLabels = { 'kubernetes.io/arch': 'amd64', role: 'edge' };
  const own = { ...settings, maxPods: 10, nodeLabels, capacity: { ...settings.capacity, hugePages } };
  return makeAdmission(own, deps as never, parts as never);
}

/** As from a manifest. */
function asking(requests: Readonly<Record<string, string>>, spec: Pod['spec'] | object = {}) {
  const containers = [{ name: 'main', image: 'etcd', resources: { requests } }];
  return aPod({
    metadata: { annotations: { 'kubernetes.io/config.source': 'file' } },
    spec: { containers, ...spec },
  });
}

const named = (name: string): Pod => aPod({ metadata: { name, uid: podUid(name) } });

function told(judgement: Judgement): string {
  return judgement.kind === 'refuse' ? judgement.refusal.reason : judgement.kind;
}

for (const [what, cluster] of [
  ['alone', undefined],
  ['of a cluster whose API does not tell of it yet', unreached],
] as const) {
  const judged = (pod: Pod, situation: Situation = {}) =>
    told(admission(cluster, situation).judge(pod, situation.standing ?? 'new'));

  test(`a node ${what} goes by what it has`, () => {
    assert.equal(judged(asking({ cpu: '100m', memory: '100Mi', 'ephemeral-storage': '100Mi' })), 'admit');
    assert.equal(judged(asking({ cpu: '100m', 'hugepages-2Mi': '64Mi' })), 'admit');
    // Critical as it is, nobody can make room for it.
    assert.equal(judged(asking({ 'hugepages-2Mi': '128Mi' })), 'UnexpectedAdmissionError');
    assert.equal(judged(asking({ cpu: '100' })), 'UnexpectedAdmissionError');
    assert.equal(judged(asking({ memory: '9Gi' })), 'UnexpectedAdmissionError');
    assert.equal(judged(asking({ cpu: '100' }), { standing: 'restored' }), 'admit');
  });

  test(`a node ${what} goes by the labels it will have`, () => {
    const selecting = (nodeSelector: Readonly<Record<string, string>>) => asking({}, { nodeSelector });
    assert.equal(judged(selecting({ 'kubernetes.io/arch': 'amd64', role: 'edge' })), 'admit');
    assert.equal(judged(selecting({ role: 'core' })), 'ask-node');
  });

  test(`a node ${what} holds only so many pods, and none while it shuts down`, () => {
    const others = Array.from({ length: 10 }, (_, index) => named(`p${index}`));
    const pod = named('web');
    assert.equal(judged(pod, { others: others.slice(1) }), 'admit');
    assert.equal(judged(pod, { others }), 'OutOfpods');
    assert.equal(judged(pod, { others, standing: 'restored' }), 'admit');
    assert.equal(judged(pod, { isShuttingDown: true }), 'NodeShutdown');
  });

  test(`a node ${what} goes by what its runtime can do`, () => {
    const strict = asking({}, { securityContext: { supplementalGroupsPolicy: 'Strict' } });
    assert.equal(judged(strict), 'admit');
    assert.equal(judged(strict, { strictGroups: false }), 'SupplementalGroupsPolicyNotSupported');
  });
}

test('a node that is alone refuses who asks for labels it does not have', async () => {
  const desk = admission(undefined);
  const pod = asking({}, { nodeSelector: { role: 'core' } });
  const settled = await new Promise((done) => desk.settle(pod, desk.judge(pod, 'new'), done));
  assert.equal((settled as { readonly reason?: string }).reason, 'NodeAffinity');
});
