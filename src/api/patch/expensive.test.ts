import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KubelingError } from '../../lib/index.ts';
import { applyPatch } from './apply.ts';
import type { JsonObject } from './json.ts';
import { PatchSchema } from './schema.ts';

const schema = new PatchSchema();
const json = (object: JsonObject, body: readonly unknown[]) =>
  applyPatch(schema, 'Pod', object, { kind: 'json', body });
const refusedWith = (status: number, message: RegExp) => (error: unknown) =>
  error instanceof KubelingError && error.details['status'] === status && message.test(error.message);

/**
 * Returns the CPU time of the work in seconds. Each test requires that it stays below a limit which
 * every machine meets; without a cost limit each of these patches takes minutes.
 */
function seconds(work: () => void): number {
  const begin = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(begin);
  return (user + system) / 1e6;
}

test('rejects copies that double the object as soon as they exceed the limit', () => {
  const body = Array.from({ length: 40 }, (_, index) => ({
    op: 'copy',
    from: '/metadata',
    path: `/metadata/c${index}`,
  }));
  const object = { metadata: { labels: { a: 'b' } } };
  const took = seconds(() =>
    assert.throws(() => json(object, body), refusedWith(422, /Unable to complete the copy/)),
  );
  assert.ok(took < 3, `${took} s`);
});

test('returns copies that share no objects with the original', () => {
  const body = [
    { op: 'copy', from: '/a', path: '/b' },
    { op: 'add', path: '/b/x/-', value: 2 },
    { op: 'copy', from: '/b', path: '/c' },
    { op: 'remove', path: '/b/x/0' },
  ];
  const object = { a: { x: [1] } };
  assert.deepEqual(json(object, body), { a: { x: [1] }, b: { x: [2] }, c: { x: [1, 2] } });
  assert.deepEqual(object, { a: { x: [1] } });
});

test('applies ten thousand changes of a large list, a large object and a deep path in linear time', () => {
  const list = Array.from({ length: 2_000 }, (_, index) => index);
  const wide = Object.fromEntries(list.map((index) => [`k${index}`, index]));
  const deep = '/d'.repeat(100);
  const nested = Array.from({ length: 100 }).reduce<JsonObject>((inner) => ({ d: inner }), { x: 1 });
  const times = (operation: (index: number) => JsonObject) =>
    Array.from({ length: 10_000 }, (_, index) => operation(index));
  const took = seconds(() => {
    const front = json(
      { list },
      times((index) =>
        index % 2 === 0 ? { op: 'add', path: '/list/0', value: -1 } : { op: 'remove', path: '/list/0' },
      ),
    );
    assert.deepEqual(front, { list });
    const added = json(
      { wide },
      times((index) => ({ op: 'add', path: `/wide/n${index}`, value: 1 })),
    );
    assert.equal(Object.keys(added['wide'] as JsonObject).length, 12_000);
    const replaced = json(
      nested,
      times((index) => ({ op: 'replace', path: `${deep}/x`, value: index })),
    );
    assert.match(JSON.stringify(replaced), /"x":9999/);
  });
  assert.ok(took < 3, `${took} s`);
});

test('rejects a JSON patch with too many move and test operations on large values', () => {
  const wide = Object.fromEntries(Array.from({ length: 50_000 }, (_, index) => [`k${index}`, 1]));
  const compares = Array.from({ length: 10_000 }, () => ({ op: 'test', path: '', value: { wide } }));
  const list = Array.from({ length: 90_000 }, () => 1);
  const moves = Array.from({ length: 10_000 }, () => ({ op: 'move', from: '/list/0', path: '/list/1' }));
  const took = seconds(() => {
    assert.throws(() => json({ wide }, compares), refusedWith(413, /split it/));
    assert.throws(() => json({ list }, moves), refusedWith(413, /split it/));
  });
  assert.ok(took < 3, `${took} s`);
});

test('rejects copies of a long text as soon as they exceed the limit', () => {
  const body = Array.from({ length: 40 }, (_, index) => ({ op: 'copy', from: '/a', path: `/a${index}` }));
  assert.throws(
    () => json({ a: 'x'.repeat(100_000) }, body),
    refusedWith(422, /accumulated size increase of copy is \d+, exceeding the limit 3145728/),
  );
});

test('rejects a patch whose result is too deep, too wide or too long', () => {
  const deep = Array.from({ length: 100 }).reduce<JsonObject>((inner) => ({ d: inner }), {});
  const many = Array.from({ length: 25_000 }, () => 0);
  const long = 'x'.repeat(2_000_000);
  const place = '/d'.repeat(60);
  assert.throws(
    () => json(deep, [{ op: 'add', path: `${place}/e`, value: deep }]),
    refusedWith(422, /at most 128 levels/),
  );
  assert.throws(
    () => json({}, [{ op: 'add', path: `${'/d'.repeat(200)}/e`, value: 1 }]),
    refusedWith(422, /at most 128 parts/),
  );
  for (const kind of ['merge', 'strategic'] as const) {
    const patch = (object: JsonObject, body: JsonObject) => () =>
      applyPatch(schema, 'Pod', object, { kind, body });
    assert.throws(patch({ a: many }, { b: many }), refusedWith(413, /at most 40000 values/));
    assert.throws(patch({ a: long }, { b: long }), refusedWith(413, /limit is 3145728/));
  }
});

test('merges lists of ten thousand items by key in linear time', () => {
  const env = Array.from({ length: 10_000 }, (_, index) => ({ name: `n${index}`, value: 'a' }));
  const changes = env.toReversed().map(({ name }) => ({ name, value: 'b' }));
  const object = { spec: { containers: [{ name: 'c', env }] } };
  const order = changes.map(({ name }) => ({ name }));
  const bodies = [
    { env: changes },
    { env: changes, '$setElementOrder/env': order },
    { env: changes.map(({ name }) => ({ name, $patch: 'delete' })) },
  ];
  const took = seconds(() => {
    for (const body of bodies)
      applyPatch(schema, 'Pod', object, {
        kind: 'strategic',
        body: { spec: { containers: [{ name: 'c', ...body }] } },
      });
  });
  assert.ok(took < 3, `${took} s`);
});

test('rejects merging a large number of ports with the same number', () => {
  const ports = (protocol: string) =>
    Array.from({ length: 10_000 }, (_, index) => ({ containerPort: 1, protocol: `${protocol}${index}` }));
  const pod = (list: readonly JsonObject[]) => ({ spec: { containers: [{ name: 'c', ports: list }] } });
  assert.throws(
    () => applyPatch(schema, 'Pod', pod(ports('a')), { kind: 'strategic', body: pod(ports('b')) }),
    refusedWith(413, /split it/),
  );
});
