import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { isKind } from '../../lib/index.ts';
import { PatchBudget } from './budget.ts';
import { type JsonObject, withoutEmptyFields } from './json.ts';
import { PatchSchema } from './schema.ts';
import { applyStrategicPatch } from './strategic-apply.ts';
import { strategicDiff } from './strategic-diff.ts';

const schema = new PatchSchema();
const apply = (kind: string, object: JsonObject, patch: JsonObject) =>
  applyStrategicPatch({ schema, budget: new PatchBudget() }, kind, object, patch);
const invalid = (error: unknown) => isKind(error, 'Invalid');

test('computes no patch between values that differ only in absent, null and empty fields', () => {
  assert.equal(strategicDiff(schema, 'PodStatus', {}, {}), undefined);
  assert.equal(
    strategicDiff(
      schema,
      'PodStatus',
      { phase: 'Running', reason: undefined },
      { phase: 'Running', message: null },
    ),
    undefined,
  );
});

test('patches conditions by their type and includes their order', () => {
  const before = {
    phase: 'Pending',
    reason: 'Old',
    conditions: [
      { type: 'A', status: 'True' },
      { type: 'B', status: 'False', reason: 'x' },
      { type: 'C', status: 'True' },
    ],
  };
  const after = {
    phase: 'Running',
    conditions: [
      { type: 'B', status: 'True' },
      { type: 'A', status: 'True' },
      { type: 'D', status: 'True' },
    ],
  };
  const patch = strategicDiff(schema, 'PodStatus', before, after);
  assert.deepEqual(patch, {
    phase: 'Running',
    '$setElementOrder/conditions': [{ type: 'B' }, { type: 'A' }, { type: 'D' }],
    conditions: [
      { type: 'B', status: 'True', reason: null },
      { type: 'D', status: 'True' },
      { $patch: 'delete', type: 'C' },
    ],
    reason: null,
  });
  assert.deepEqual(apply('PodStatus', before, patch ?? {}), after);
});

test('computes a patch if only the order of a list changed', () => {
  const [a, b] = [{ ip: '10.0.0.1' }, { ip: 'fd00::1' }];
  assert.deepEqual(strategicDiff(schema, 'PodStatus', { podIPs: [a, b] }, { podIPs: [b, a] }), {
    '$setElementOrder/podIPs': [b, a],
  });
});

test('replaces the complete lists of container statuses and node addresses', () => {
  const statuses = [
    { name: 'a', ready: true },
    { name: 'b', ready: false },
  ];
  const ready = [
    { name: 'a', ready: true },
    { name: 'b', ready: true },
  ];
  assert.deepEqual(
    strategicDiff(schema, 'PodStatus', { containerStatuses: statuses }, { containerStatuses: ready }),
    { containerStatuses: ready },
  );
  const one = [{ type: 'InternalIP', address: '10.0.0.1' }];
  const two = [...one, { type: 'InternalIP', address: 'fd00::1' }];
  for (const [before, after] of [
    [one, two],
    [two, one],
    [undefined, two],
  ]) {
    const patch = strategicDiff(schema, 'NodeStatus', { addresses: before }, { addresses: after });
    assert.deepEqual(patch, { addresses: [...(after ?? []), { $patch: 'replace' }] });
    assert.deepEqual(apply('NodeStatus', withoutEmptyFields({ addresses: before }), patch ?? {}), {
      addresses: after,
    });
  }
});

test('preserves items that another client added to a merged list', () => {
  const condition = (type: string, status = 'True') => ({ type, status });
  const before = { conditions: [condition('A'), condition('B')] };
  const after = { conditions: [condition('B', 'False'), condition('A')] };
  const meanwhile = {
    conditions: [condition('Foreign'), condition('A'), condition('Other'), condition('B')],
  };
  const patch = strategicDiff(schema, 'PodStatus', before, after) ?? {};
  assert.deepEqual(apply('PodStatus', meanwhile, patch), {
    conditions: [condition('Foreign'), condition('Other'), condition('B', 'False'), condition('A')],
  });
});

test('orders items as an API server does', () => {
  const types = (...names: readonly string[]) => names.map((type) => ({ type }));
  const order = (...names: readonly string[]) => ({ '$setElementOrder/conditions': types(...names) });
  const deleted = (type: string) => ({ $patch: 'delete', type });
  const cases: readonly (readonly [readonly string[], JsonObject, readonly string[]])[] = [
    [['A', 'X', 'B'], order('B', 'A'), ['X', 'B', 'A']],
    [['b', 'd', 'e'], { conditions: types('c', 'e') }, ['c', 'b', 'd', 'e']],
    [['d', 'a'], { ...order('b'), conditions: [...types('b'), deleted('a')] }, ['d', 'b']],
    [['a', 'b'], { conditions: [{ $patch: 'replace' }, ...types('c', 'a')] }, ['c', 'a']],
    [['z'], { conditions: [...types('a', 'b', 'a'), { $patch: 'replace' }] }, ['a', 'a', 'b']],
    [['a', 'b'], { conditions: [deleted('a'), deleted('x')] }, ['b']],
  ];
  for (const [before, patch, after] of cases)
    assert.deepEqual(apply('PodStatus', { conditions: types(...before) }, patch), {
      conditions: types(...after),
    });
});

test('distinguishes several ports with the same number by their protocol', () => {
  const tcp = { port: 53, protocol: 'TCP', name: 'a' };
  const udp = { port: 53, protocol: 'UDP', name: 'b' };
  const patched = (ports: readonly JsonObject[], spec: JsonObject) =>
    apply('ServiceSpec', { ports }, spec)['ports'];
  const both = [{ port: 53 }, { port: 53 }];
  assert.deepEqual(patched([tcp], { ports: [udp], '$setElementOrder/ports': both }), [tcp, udp]);
  assert.deepEqual(patched([tcp], { ports: [tcp, udp], '$setElementOrder/ports': both }), [tcp, udp]);
  const renamed = { port: 53, protocol: 'UDP', name: 'c' };
  assert.deepEqual(patched([tcp, udp], { ports: [renamed] }), [tcp, renamed]);
  const deletion = { port: 53, protocol: 'TCP', $patch: 'delete' };
  assert.deepEqual(patched([tcp, udp], { ports: [deletion] }), [udp]);
  // A port whose number is unique may change its protocol.
  assert.deepEqual(patched([tcp], { ports: [udp], '$setElementOrder/ports': [{ port: 53 }] }), [udp]);
});

test('adds, removes and orders merged scalar values', () => {
  const before = { metadata: { finalizers: ['a', 'b', 'c'] } };
  const after = { metadata: { finalizers: ['d', 'c', 'a'] } };
  const patch = strategicDiff(schema, 'Node', before, after) ?? {};
  assert.deepEqual(patch, {
    metadata: {
      '$setElementOrder/finalizers': ['d', 'c', 'a'],
      finalizers: ['d'],
      '$deleteFromPrimitiveList/finalizers': ['b'],
    },
  });
  assert.deepEqual(apply('Node', before, patch), after);
  assert.deepEqual(apply('Node', before, { metadata: { finalizers: ['d', 'a'] } }), {
    metadata: { finalizers: ['d', 'a', 'b', 'c'] },
  });
});

test('merges the metadata of kinds outside the generated table, and the drivers of a CSINode', () => {
  const before = {
    metadata: { labels: { a: '1' }, ownerReferences: [{ uid: 'x' }] },
    spec: { drivers: [{ name: 'p' }] },
  };
  const patch = { metadata: { ownerReferences: [{ uid: 'y' }] }, spec: { drivers: [{ name: 'q' }] } };
  assert.deepEqual(apply('CSINode', before, patch), {
    metadata: { labels: { a: '1' }, ownerReferences: [{ uid: 'y' }, { uid: 'x' }] },
    spec: { drivers: [{ name: 'q' }, { name: 'p' }] },
  });
});

test('replaces or deletes an object with $patch', () => {
  const object = { spec: { nodeName: 'n', hostname: 'h' }, metadata: { labels: { a: '1', b: '2' } } };
  assert.deepEqual(
    apply('Pod', object, { metadata: { labels: { $patch: 'replace', c: '3' } } })['metadata'],
    {
      labels: { c: '3' },
    },
  );
  assert.deepEqual(apply('Pod', object, { spec: { $patch: 'delete' } })['spec'], {});
  assert.throws(() => apply('Pod', object, { spec: { $patch: 'explode' } }), invalid);
});

test('removes the fields that $retainKeys does not name', () => {
  const spec = { volumes: [{ name: 'v', emptyDir: { medium: 'Memory' } }] };
  const after = { volumes: [{ name: 'v', hostPath: { path: '/x' } }] };
  const patch = strategicDiff(schema, 'PodSpec', spec, after) ?? {};
  assert.deepEqual(patch['volumes'], [
    { $retainKeys: ['hostPath', 'name'], name: 'v', hostPath: { path: '/x' }, emptyDir: null },
  ]);
  assert.deepEqual(apply('PodSpec', spec, patch), after);
  const bare = { volumes: [{ $retainKeys: ['name', 'hostPath'], name: 'v', hostPath: { path: '/x' } }] };
  assert.deepEqual(apply('PodSpec', spec, bare), after);
  assert.throws(() => apply('PodSpec', spec, { $retainKeys: ['volumes'], nodeName: 'n' }), invalid);
});

test('leaves no patch directives in fields that the patch adds to the object', () => {
  const patch = {
    conditions: [
      { $patch: 'delete', type: 'A' },
      { type: 'B', status: 'True', reason: null },
    ],
    '$setElementOrder/conditions': [{ type: 'B' }],
    resources: { requests: { $patch: 'delete' }, limits: { cpu: '1', memory: null } },
  };
  assert.deepEqual(apply('PodStatus', {}, patch), {
    conditions: [{ type: 'B', status: 'True' }],
    resources: { limits: { cpu: '1' } },
  });
});

test('rejects patches that contradict themselves', () => {
  const object = { conditions: [{ type: 'A' }, { type: 'B' }] };
  const order = [{ type: 'B' }, { type: 'A' }];
  const refused = [
    { conditions: [{ status: 'True' }] },
    { conditions: ['A'] },
    { conditions: [{ $patch: 'strange', type: 'A' }] },
    { conditions: [{ type: 'A' }, { type: 'B' }], '$setElementOrder/conditions': order },
    { conditions: [{ type: 'C' }], '$setElementOrder/conditions': order },
    { '$setElementOrder/conditions': 'B' },
    { containerStatuses: [], '$setElementOrder/containerStatuses': [] },
    { '$deleteFromPrimitiveList/conditions': ['A'], conditions: [] },
  ];
  for (const patch of refused)
    assert.throws(() => apply('PodStatus', object, patch), invalid, JSON.stringify(patch));
});

const plainRecord = <T>(model: { [K in keyof T]: fc.Arbitrary<T[K]> }) =>
  fc.record(model, { noNullPrototype: true });
const word = fc.constantFrom('a', 'b', 'c', 'd', 'e');
const optional = <T>(of: fc.Arbitrary<T>) => fc.option(of, { nil: undefined });
const listBy = <T>(of: fc.Arbitrary<T>, selector: (item: T) => unknown) =>
  optional(fc.uniqueArray(of, { selector, maxLength: 5 }));
/**
 * Generates lists in which equal keys are adjacent, because API servers do not preserve any other
 * order.
 */
const grouped = <T>(of: fc.Arbitrary<T>, key: (item: T) => string) =>
  optional(
    fc.array(of, { maxLength: 4 }).map((list) => list.toSorted((a, b) => key(a).localeCompare(key(b)))),
  );
const condition = plainRecord({
  type: word,
  status: word,
  reason: optional(word),
  lastProbeTime: fc.constant(null),
});
const amounts = optional(fc.dictionary(word, word, { maxKeys: 3, noNullPrototype: true }));
const container = plainRecord({
  name: word,
  ready: fc.boolean(),
  resources: optional(plainRecord({ limits: amounts })),
});

const podStatus = plainRecord({
  phase: optional(word),
  message: optional(word),
  conditions: listBy(condition, ({ type }) => type),
  podIPs: listBy(plainRecord({ ip: word }), ({ ip }) => ip),
  containerStatuses: optional(fc.array(container, { maxLength: 3 })),
  resources: optional(plainRecord({ requests: amounts, limits: amounts })),
  resourceClaimStatuses: listBy(
    plainRecord({ name: word, resourceClaimName: optional(word) }),
    ({ name }) => name,
  ),
});

const node = plainRecord({
  metadata: plainRecord({
    labels: amounts,
    annotations: amounts,
    finalizers: listBy(word, (value) => value),
    ownerReferences: grouped(plainRecord({ uid: word, name: word }), ({ uid }) => uid),
  }),
  status: optional(
    plainRecord({
      addresses: grouped(plainRecord({ type: word, address: word }), ({ type }) => type),
      conditions: listBy(condition, ({ type }) => type),
      images: optional(
        fc.array(plainRecord({ names: fc.array(word), sizeBytes: fc.nat() }), { maxLength: 3 }),
      ),
      volumesInUse: optional(fc.array(word, { maxLength: 3 })),
      capacity: amounts,
    }),
  ),
});

for (const [kind, values] of [
  ['PodStatus', podStatus],
  ['Node', node],
] as const) {
  const pair = fc.tuple(values, values) as fc.Arbitrary<[JsonObject, JsonObject]>;

  test(`computes an idempotent patch that changes any value of ${kind} into any other value`, () => {
    fc.assert(
      fc.property(pair, ([before, after]) => {
        const patch = strategicDiff(schema, kind, before, after) ?? {};
        const wire = JSON.parse(JSON.stringify(patch)) as JsonObject;
        const once = apply(kind, withoutEmptyFields(before), wire);
        assert.deepEqual(once, withoutEmptyFields(after));
        assert.deepEqual(apply(kind, once, wire), once);
      }),
      { numRuns: 1_000 },
    );
  });

  test(`does not modify the arguments when patching a ${kind}`, () => {
    fc.assert(
      fc.property(pair, ([before, after]) => {
        const copies = structuredClone([before, after]);
        const patch = strategicDiff(schema, kind, before, after) ?? {};
        const patchCopy = structuredClone(patch);
        apply(kind, withoutEmptyFields(before), patch);
        assert.deepEqual([before, after, patch], [...copies, patchCopy]);
      }),
    );
  });
}

test('applies any patch to any status without an unexpected error', () => {
  const names = fc.constantFrom(
    'conditions',
    'podIPs',
    '$setElementOrder/conditions',
    '$patch',
    '$retainKeys',
    'type',
    '$deleteFromPrimitiveList/podIPs',
    'resources',
  );
  const { anything } = fc.letrec((tie) => ({
    anything: fc.oneof(
      { depthSize: 'small' },
      fc.constantFrom('replace', 'delete', 'A', null, 1),
      fc.array(tie('anything'), { maxLength: 3 }),
      fc.dictionary(names, tie('anything'), { maxKeys: 3 }),
    ),
  }));
  const objects = fc.dictionary(names, anything, { maxKeys: 4 });
  fc.assert(
    fc.property(objects, objects, (object, patch) => {
      try {
        assert.equal(typeof apply('PodStatus', object, patch), 'object');
      } catch (error) {
        assert.ok(invalid(error), String(error));
      }
    }),
  );
});
