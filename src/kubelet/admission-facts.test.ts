import assert from 'node:assert/strict';
import { test } from 'node:test';
import { aPod } from '../../test/fakes/pods.ts';
import { settings } from '../../test/simulation/kubelet-life.ts';
import { type Pod, podUid } from '../pods/index.ts';
import { judgePod } from '../resources/index.ts';
import { admissionFacts } from './admission-facts.ts';

interface Situation {
  readonly others?: readonly Pod[];
  readonly standing?: 'new' | 'restored';
  readonly strictGroups?: boolean;
  readonly isShuttingDown?: boolean;
  readonly later?: readonly string[];
}

/** A node of 4 cores and 10 pods whose Node object is not known yet. */
function judged(pod: Pod, situation: Situation = {}): string {
  const {
    others = [],
    standing = 'new',
    strictGroups = true,
    isShuttingDown = false,
    later = [],
  } = situation;
  const hugePages = new Map([['2MB', 64 * 2 ** 20]]);
  const nodeLabels = { 'kubernetes.io/arch': 'amd64', role: 'edge' };
  const own = { ...settings, maxPods: 10, nodeLabels, capacity: { ...settings.capacity, hugePages } };
  const facts = admissionFacts(own, {
    pending: { after: () => new Set(later.map(podUid)) },
    standing: () => standing,
    active: () => others,
    isTerminating: () => false,
    node: () => undefined,
    nodeFor: (_pod, node) => node,
    abilities: () => ({ strictGroups, handlers: new Map() }),
    pressures: () => [],
    isShuttingDown: () => isShuttingDown,
  });
  const judgement = judgePod(pod, facts(pod, 'add'));
  return judgement.kind === 'refuse' ? judgement.refusal.reason : judgement.kind;
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

test('a node whose Node object is unknown has its configured capacity', () => {
  assert.equal(judged(asking({ cpu: '100m', memory: '100Mi', 'ephemeral-storage': '100Mi' })), 'admit');
  assert.equal(judged(asking({ cpu: '100m', 'hugepages-2Mi': '64Mi' })), 'admit');
  // A static pod is critical, but there are no pods to preempt.
  assert.equal(judged(asking({ 'hugepages-2Mi': '128Mi' })), 'UnexpectedAdmissionError');
  assert.equal(judged(asking({ cpu: '100' })), 'UnexpectedAdmissionError');
  assert.equal(judged(asking({ memory: '9Gi' })), 'UnexpectedAdmissionError');
  assert.equal(judged(asking({ cpu: '100' }), { standing: 'restored' }), 'admit');
});

test('a node whose Node object is unknown has the labels it will register with', () => {
  const selecting = (nodeSelector: Readonly<Record<string, string>>) => asking({}, { nodeSelector });
  assert.equal(judged(selecting({ 'kubernetes.io/arch': 'amd64', role: 'edge' })), 'admit');
  assert.equal(judged(selecting({ role: 'core' })), 'ask-node');
});

test('a node admits at most maxPods pods, and none while it shuts down', () => {
  const others = Array.from({ length: 10 }, (_, index) => named(`p${index}`));
  const pod = named('web');
  assert.equal(judged(pod, { others: others.slice(1) }), 'admit');
  assert.equal(judged(pod, { others }), 'OutOfpods');
  assert.equal(judged(pod, { others, standing: 'restored' }), 'admit');
  assert.equal(judged(pod, { isShuttingDown: true }), 'NodeShutdown');
});

test('pending pods whose admission began later do not count', () => {
  const others = Array.from({ length: 10 }, (_, index) => named(`p${index}`));
  assert.equal(judged(named('web'), { others, later: ['p3'] }), 'admit');
});

test('a strict supplemental groups policy requires a runtime that supports it', () => {
  const strict = asking({}, { securityContext: { supplementalGroupsPolicy: 'Strict' } });
  assert.equal(judged(strict), 'admit');
  assert.equal(judged(strict, { strictGroups: false }), 'SupplementalGroupsPolicyNotSupported');
});
