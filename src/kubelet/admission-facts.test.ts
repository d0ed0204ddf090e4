import assert from 'node:assert/strict';
import { test } from 'node:test';
import { aPod } from '../../test/fakes/pods.ts';
import { settings } from '../../test/simulation/kubelet-life.ts';
import { type Pod, podUid } from '../pods/index.ts';
import { evaluatePod } from '../resources/index.ts';
import { admissionFacts } from './admission-facts.ts';

interface Situation {
  readonly others?: readonly Pod[];
  readonly standing?: 'new' | 'restored';
  readonly strictGroups?: boolean;
  readonly isShuttingDown?: boolean;
  readonly later?: readonly string[];
}

/** A node with 4 cores and 10 pods whose Node object has not been read yet. */
function evaluated(pod: Pod, situation: Situation = {}): string {
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
  const evaluation = evaluatePod(pod, facts(pod, 'add'));
  return evaluation.kind === 'reject' ? evaluation.rejection.reason : evaluation.kind;
}

/** A pod as decoded from a manifest. */
function asking(requests: Readonly<Record<string, string>>, spec: Pod['spec'] | object = {}) {
  const containers = [{ name: 'main', image: 'etcd', resources: { requests } }];
  return aPod({
    metadata: { annotations: { 'kubernetes.io/config.source': 'file' } },
    spec: { containers, ...spec },
  });
}

const named = (name: string): Pod => aPod({ metadata: { name, uid: podUid(name) } });

test('uses the configured capacity before the Node object has been read', () => {
  assert.equal(evaluated(asking({ cpu: '100m', memory: '100Mi', 'ephemeral-storage': '100Mi' })), 'admit');
  assert.equal(evaluated(asking({ cpu: '100m', 'hugepages-2Mi': '64Mi' })), 'admit');
  // The test pod is static and therefore critical, but there are no pods to preempt.
  assert.equal(evaluated(asking({ 'hugepages-2Mi': '128Mi' })), 'UnexpectedAdmissionError');
  assert.equal(evaluated(asking({ cpu: '100' })), 'UnexpectedAdmissionError');
  assert.equal(evaluated(asking({ memory: '9Gi' })), 'UnexpectedAdmissionError');
  assert.equal(evaluated(asking({ cpu: '100' }), { standing: 'restored' }), 'admit');
});

test('uses the labels of the registration before the Node object has been read', () => {
  const selecting = (nodeSelector: Readonly<Record<string, string>>) => asking({}, { nodeSelector });
  assert.equal(evaluated(selecting({ 'kubernetes.io/arch': 'amd64', role: 'edge' })), 'admit');
  assert.equal(evaluated(selecting({ role: 'core' })), 'fetch-node');
});

test('admits at most maxPods pods, and none during a node shutdown', () => {
  const rest = Array.from({ length: 10 }, (_, index) => named(`p${index}`));
  const pod = named('web');
  assert.equal(evaluated(pod, { others: rest.slice(1) }), 'admit');
  assert.equal(evaluated(pod, { others: rest }), 'OutOfpods');
  assert.equal(evaluated(pod, { others: rest, standing: 'restored' }), 'admit');
  assert.equal(evaluated(pod, { isShuttingDown: true }), 'NodeShutdown');
});

test('does not count other pending pods whose admission began after that of the pod', () => {
  const rest = Array.from({ length: 10 }, (_, index) => named(`p${index}`));
  assert.equal(evaluated(named('web'), { others: rest, later: ['p3'] }), 'admit');
});

test('rejects a strict supplemental groups policy unless the runtime supports it', () => {
  const strict = asking({}, { securityContext: { supplementalGroupsPolicy: 'Strict' } });
  assert.equal(evaluated(strict), 'admit');
  assert.equal(evaluated(strict, { strictGroups: false }), 'SupplementalGroupsPolicyNotSupported');
});
