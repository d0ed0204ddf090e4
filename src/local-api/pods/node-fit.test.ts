import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '../../api/index.ts';
import type { StoredObject } from '../api/index.ts';
import { findNode, nodeMismatch } from './node-fit.ts';

const meta = { uid: 'u', resourceVersion: '1', creationTimestamp: '' };

function pod(spec: JsonObject): StoredObject {
  return { apiVersion: 'v1', kind: 'Pod', metadata: { ...meta, name: 'p' }, spec };
}

function node(labels: Record<string, string>, spec: JsonObject = {}, name = 'n'): StoredObject {
  return { apiVersion: 'v1', kind: 'Node', metadata: { ...meta, name, labels }, spec };
}

function wanting(
  matchExpressions: readonly JsonObject[],
  matchFields: readonly JsonObject[] = [],
): StoredObject {
  const nodeSelectorTerms = [{ matchExpressions, matchFields }];
  return pod({
    affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } },
  });
}

const unwanted = "node(s) didn't match Pod's node affinity/selector";

test('evaluates each operator of node affinity expressions', () => {
  const here = node({ size: '5', zone: 'a' });
  const cases: readonly (readonly [JsonObject, string | undefined])[] = [
    [{ key: 'zone', operator: 'In', values: ['a', 'b'] }, undefined],
    [{ key: 'zone', operator: 'In', values: ['b'] }, unwanted],
    [{ key: 'zone', operator: 'NotIn', values: ['a'] }, unwanted],
    [{ key: 'other', operator: 'NotIn', values: ['a'] }, undefined],
    [{ key: 'zone', operator: 'Exists' }, undefined],
    [{ key: 'zone', operator: 'DoesNotExist' }, unwanted],
    [{ key: 'size', operator: 'Gt', values: ['4'] }, undefined],
    [{ key: 'size', operator: 'Gt', values: ['5'] }, unwanted],
    [{ key: 'size', operator: 'Lt', values: ['6'] }, undefined],
    [{ key: 'zone', operator: 'Lt', values: ['6'] }, unwanted],
  ];
  for (const [expression, expected] of cases)
    assert.equal(nodeMismatch(wanting([expression]), here), expected, JSON.stringify(expression));
});

test('matches nodes by name in matchFields, and matches no node with an empty node selector term', () => {
  const named = wanting([], [{ key: 'metadata.name', operator: 'In', values: ['n'] }]);
  assert.equal(nodeMismatch(named, node({})), undefined);
  assert.equal(nodeMismatch(named, node({}, {}, 'm')), unwanted);
  assert.equal(nodeMismatch(wanting([]), node({})), unwanted);
});

test('ignores PreferNoSchedule taints', () => {
  const soft = node({}, { taints: [{ key: 'a', effect: 'PreferNoSchedule' }] });
  assert.equal(nodeMismatch(pod({}), soft), undefined);
});

test('binds a pod that tolerates a cordon to a cordoned node', () => {
  const cordoned = node({}, { unschedulable: true });
  const tolerations = [{ key: 'node.kubernetes.io/unschedulable', operator: 'Exists' }];
  assert.equal(nodeMismatch(pod({}), cordoned), 'node(s) were unschedulable');
  assert.equal(nodeMismatch(pod({ tolerations }), cordoned), undefined);
});

test('returns the first matching node, or else a message with the number of nodes per reason', () => {
  const nodes = [node({}, { unschedulable: true }, 'a'), node({}, {}, 'b')];
  assert.deepEqual(findNode(pod({}), nodes), { kind: 'on', node: 'b' });
  const picky = pod({ nodeSelector: { x: 'y' } });
  assert.deepEqual(findNode(picky, nodes), {
    kind: 'nowhere',
    why: `0/2 nodes are available: 1 ${unwanted}, 1 node(s) were unschedulable.`,
  });
});
