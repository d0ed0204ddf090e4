import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Node } from '../../kinds/index.ts';
import { KubelingError } from '../../lib/index.ts';
import { applyMergePatch, applyPatch } from './apply.ts';
import { PatchBudget } from './budget.ts';
import type { JsonObject } from './json.ts';
import { applyJsonPatch as applyJsonPatchWithin } from './json-patch.ts';
import { PatchSchema } from './schema.ts';
import { nodeStatusPatch, podStatusPatch } from './strategic-diff.ts';

const schema = new PatchSchema();
const applyJsonPatch = (document: unknown, patch: unknown) =>
  applyJsonPatchWithin(document, patch, new PatchBudget());
const refusedWith = (status: number) => (error: unknown) =>
  error instanceof KubelingError && error.code === 'API_INVALID' && error.details['status'] === status;

test('passes the examples of RFC 7396', () => {
  const examples: readonly (readonly [unknown, unknown, unknown])[] = [
    [{ a: 'b' }, { a: 'c' }, { a: 'c' }],
    [{ a: 'b' }, { b: 'c' }, { a: 'b', b: 'c' }],
    [{ a: 'b' }, { a: null }, {}],
    [{ a: 'b', b: 'c' }, { a: null }, { b: 'c' }],
    [{ a: ['b'] }, { a: 'c' }, { a: 'c' }],
    [{ a: 'c' }, { a: ['b'] }, { a: ['b'] }],
    [{ a: { b: 'c' } }, { a: { b: 'd', c: null } }, { a: { b: 'd' } }],
    [{ a: [{ b: 'c' }] }, { a: [1] }, { a: [1] }],
    [
      ['a', 'b'],
      ['c', 'd'],
      ['c', 'd'],
    ],
    [{ a: 'b' }, ['c'], ['c']],
    [{ a: 'foo' }, null, null],
    [{ e: null }, { a: 1 }, { e: null, a: 1 }],
    [[1, 2], { a: 'b', c: null }, { a: 'b' }],
    [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
  ];
  for (const [target, patch, expected] of examples)
    assert.deepEqual(applyMergePatch(target, patch), expected);
});

test('applies each operation of RFC 6902', () => {
  const document = { a: { b: [1, 2] }, 'x/y': { '~': 0 } };
  const cases: readonly (readonly [JsonObject, unknown])[] = [
    [
      { op: 'add', path: '/a/b/1', value: 9 },
      { ...document, a: { b: [1, 9, 2] } },
    ],
    [
      { op: 'add', path: '/a/b/-', value: 9 },
      { ...document, a: { b: [1, 2, 9] } },
    ],
    [
      { op: 'add', path: '/c', value: null },
      { ...document, c: null },
    ],
    [
      { op: 'replace', path: '/x~1y/~0', value: 1 },
      { ...document, 'x/y': { '~': 1 } },
    ],
    [{ op: 'replace', path: '', value: { z: 1 } }, { z: 1 }],
    [
      { op: 'remove', path: '/a/b/0' },
      { ...document, a: { b: [2] } },
    ],
    [
      { op: 'copy', from: '/a/b/0', path: '/c' },
      { ...document, c: 1 },
    ],
    [
      { op: 'move', from: '/a/b', path: '/c' },
      { ...document, a: {}, c: [1, 2] },
    ],
    [{ op: 'test', path: '/a', value: { b: [1, 2] } }, document],
  ];
  const before = structuredClone(document);
  for (const [operation, expected] of cases)
    assert.deepEqual(applyJsonPatch(document, [operation]), expected);
  assert.deepEqual(document, before);
});

test('rejects a JSON patch that cannot be applied', () => {
  const document = { a: [1] };
  const impossible: readonly JsonObject[] = [
    { op: 'test', path: '/a/0', value: 2 },
    { op: 'remove', path: '/b' },
    { op: 'remove', path: '' },
    { op: 'replace', path: '/a/1', value: 1 },
    { op: 'add', path: '/a/2', value: 1 },
    { op: 'add', path: '/a/01', value: 1 },
    { op: 'add', path: '/a/0/x', value: 1 },
    { op: 'copy', from: '/b', path: '/c' },
    { op: 'move', from: '/a', path: '/a/0' },
    { op: 'fly', path: '' },
    { op: 'remove', path: 'a' },
  ];
  for (const operation of impossible)
    assert.throws(() => applyJsonPatch(document, [operation]), refusedWith(422), JSON.stringify(operation));
  const malformed = [{}, [1], [{ op: 'add', path: '/a' }]];
  for (const patch of malformed) assert.throws(() => applyJsonPatch(document, patch), refusedWith(400));
  assert.throws(
    () => applyJsonPatch({}, new Array(10_001).fill({ op: 'test', path: '', value: {} })),
    refusedWith(413),
  );
});

test('adds a missing field with a replace operation of a JSON patch, as API servers do', () => {
  assert.deepEqual(applyJsonPatch({ a: 1 }, [{ op: 'replace', path: '/b', value: 2 }]), { a: 1, b: 2 });
});

test('treats __proto__ and similar names as ordinary fields', () => {
  const patch = JSON.parse(
    '{"__proto__": {"polluted": true}, "metadata": {"labels": {"__proto__": "x"}}}',
  ) as JsonObject;
  for (const kind of ['merge', 'strategic'] as const) {
    const patched = applyPatch(schema, 'Pod', {}, { kind, body: patch });
    assert.deepEqual(Object.keys(patched), ['__proto__', 'metadata']);
    assert.equal(({} as JsonObject)['polluted'], undefined);
  }
});

test('rejects a patch whose result is not an object', () => {
  assert.throws(() => applyPatch(schema, 'Pod', {}, { kind: 'merge', body: 'x' }), refusedWith(400));
  assert.throws(
    () => applyPatch(schema, 'Pod', {}, { kind: 'json', body: [{ op: 'replace', path: '', value: 1 }] }),
    refusedWith(400),
  );
});

test('includes the UID of the pod in a patch of its status', () => {
  const before = { phase: 'Pending' };
  assert.equal(podStatusPatch(schema, { uid: 'u', before, after: before }), undefined);
  assert.deepEqual(podStatusPatch(schema, { uid: 'u', before, after: { phase: 'Running' } }), {
    kind: 'strategic',
    body: { metadata: { uid: 'u' }, status: { phase: 'Running' } },
  });
});

test('includes only status, labels and annotations in the patch of a node status', () => {
  const before: Node = {
    metadata: { name: 'n', resourceVersion: '1', labels: { a: '1' } },
    spec: { podCIDR: 'x' },
  };
  const after: Node = {
    metadata: { name: 'n', resourceVersion: '2', labels: { a: '2' }, annotations: { b: '1' } },
    status: { conditions: [{ type: 'Ready', status: 'True' }] },
  };
  const patch = nodeStatusPatch(schema, before, after);
  assert.deepEqual(patch?.body, {
    metadata: { labels: { a: '2' }, annotations: { b: '1' } },
    status: { conditions: [{ type: 'Ready', status: 'True' }] },
  });
  assert.equal(nodeStatusPatch(schema, before, { ...before, spec: {} }), undefined);
});
