import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { parse } from 'yaml';
import { apiResources } from '../../api/index.ts';
import { StatusError } from '../api/api-types.ts';
import { createCatalogue } from '../registry/catalogue.ts';
import { type OutputContext, renderResponse } from './negotiation.ts';
import { isLongList, listChunks, yamlChunks } from './streamed-body.ts';

const entry = createCatalogue({}).of(apiResources.configMaps);

function listOf(count: number) {
  const items = Array.from({ length: count }, (_, index) => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: `c${index}`, namespace: 'default', creationTimestamp: '2026-01-01T00:00:00Z' },
    data: { text: `"quoted" ${index} ü` },
  }));
  const metadata = { resourceVersion: '7', continue: 'x', remainingItemCount: 3 };
  return {
    kind: 'list',
    code: 200,
    list: { kind: 'ConfigMapList', apiVersion: 'v1', metadata, items },
  } as const;
}

function shaping(shape: OutputContext['shape']): OutputContext {
  let nowMs = Date.parse('2026-01-01T00:00:05Z');
  // The clock advances with each reading, which shows whether all chunks of a table compute ages
  // for the same time.
  return { entry, shape, includeObject: 'Metadata', nowMs: () => (nowMs += 1_000) };
}

describe('response body of a long list', () => {
  for (const shape of ['whole', 'table', 'partial-list'] as const) {
    for (const count of [201, 300, 1_234]) {
      test(`a list of ${count} objects as ${shape} is sent in chunks whose joined text equals a response in one piece`, () => {
        const pieces = [...listChunks(listOf(count), shaping(shape))];
        assert.ok(pieces.length > count / 100, String(pieces.length));
        const whole = renderResponse(listOf(count), shaping(shape));
        assert.equal(pieces.join(''), `${JSON.stringify(whole)}\n`);
      });
    }
  }

  test('an indented list is sent in chunks whose joined text equals a response in one piece', () => {
    const pieces = [...listChunks(listOf(300), shaping('whole'), 'indented')];
    const whole = renderResponse(listOf(300), shaping('whole'));
    assert.equal(pieces.join(''), `${JSON.stringify(whole, null, 2)}\n`);
  });

  test('sends large objects in smaller chunks', () => {
    const { list, ...answer } = listOf(100);
    const items = list.items.map((item) => ({ ...item, data: { text: 'x'.repeat(200_000) } }));
    const pieces = [...listChunks({ ...answer, list: { ...list, items } }, shaping('whole'))];
    assert.ok(pieces.slice(3).every(({ length }) => length < 1_100_000));
  });

  test('generates a chunk of a list only when the previous one is read', () => {
    let created = 0;
    const response = listOf(1_000);
    for (const item of response.list.items)
      Object.assign(item, {
        toJSON() {
          created++;
          return {};
        },
      });
    const pieces = listChunks(response, shaping('table'))[Symbol.iterator]();
    pieces.next();
    assert.ok(created <= 100, String(created));
  });

  test('rejects an unsupported representation of a long list before its first chunk', () => {
    assert.throws(() => listChunks(listOf(300), shaping('partial')), StatusError);
  });

  test('only lists above a number of objects are sent in chunks', () => {
    assert.equal(isLongList(listOf(20)), false);
    assert.equal(isLongList(listOf(21)), true);
    assert.equal(isLongList({ kind: 'object', code: 200, object: {} }), false);
  });
});

const text = (value: unknown) => [...yamlChunks(value)].join('');

test('writes an object as YAML', () => {
  const value = {
    kind: 'Pod',
    spec: { containers: [{ name: 'c', args: ['yes', 'a: b'], ports: [] }, null] },
  };
  assert.equal(
    text({ ...value, empty: {}, none: undefined, number: 1 }),
    'kind: Pod\nspec:\n  containers:\n    - name: c\n      args:\n        - "yes"\n        - "a: b"\n      ports: []\n    - null\nempty: {}\nnumber: 1\n',
  );
});

test('writes YAML that parses to the same value', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 5 }), (value) => {
      const plain: unknown = JSON.parse(JSON.stringify(value));
      assert.deepEqual(parse(text(plain), { version: '1.1', maxAliasCount: 0 }), plain);
    }),
    { numRuns: 500 },
  );
});

test('generates YAML chunks only when they are read', () => {
  const items = Array.from({ length: 50_000 }, (_, index) => ({ name: `n${index}` }));
  const pieces = yamlChunks({ items });
  assert.ok((pieces.next().value ?? '').length < 70_000);
  assert.ok([...pieces].length > 10);
});
