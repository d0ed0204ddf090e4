import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { KubelingError } from '../errors.ts';
import { plainFields, plainText } from './values.ts';

const broken = {
  get inside(): never {
    throw new Error('no');
  },
};

test('keeps plain values, converts others to text and omits undefined', () => {
  const plain = plainFields({
    text: 'a',
    number: 1.5,
    endless: Number.POSITIVE_INFINITY,
    big: 2n ** 70n,
    yes: true,
    none: null,
    missing: undefined,
    symbol: Symbol('s'),
    run: () => {},
    date: new Date(0),
    broken: new Date(Number.NaN),
    bytes: Buffer.from('secret'),
    url: new URL('https://example.com/x'),
    later: Promise.resolve(),
  });
  assert.deepEqual(plain, {
    text: 'a',
    number: 1.5,
    endless: 'Infinity',
    big: '1180591620717411303424',
    yes: true,
    none: null,
    symbol: 'Symbol(s)',
    run: '<function>',
    date: '1970-01-01T00:00:00.000Z',
    broken: '<unreadable>',
    bytes: '<6 bytes>',
    url: 'https://example.com/x',
    later: '<promise>',
  });
});

test('logs errors inside fields with their causes', () => {
  const error = new KubelingError('CRI_FAILED', 'Cannot start', { cause: new Error('no space') });
  assert.deepEqual(plainFields({ error }), { error: 'Cannot start: no space' });
});

test('logs maps, sets and lists as records and lists', () => {
  assert.deepEqual(plainFields({ map: new Map([['a', 1]]), set: new Set([1, 2]), list: ['x', { y: 1 }] }), {
    map: { a: 1 },
    set: [1, 2],
    list: ['x', { y: 1 }],
  });
});

test('logs cycles, throwing getters and hostile proxies by a placeholder', () => {
  const circular: Record<string, unknown> = { name: 'c' };
  circular['self'] = circular;
  const hostile = new Proxy({}, { ownKeys: () => assert.fail('no') });
  assert.deepEqual(plainFields({ circular, broken, hostile, after: 1 }), {
    circular: { name: 'c', self: '<circular>' },
    broken: { inside: '<unreadable>' },
    hostile: '<unreadable>',
    after: 1,
  });
});

test('the same object in two fields is not treated as a cycle', () => {
  const shared = { a: 1 };
  assert.deepEqual(plainFields({ x: shared, y: shared }), { x: { a: 1 }, y: { a: 1 } });
});

test('limits the length, depth, width and number of logged values', () => {
  let deep: object = {};
  for (let i = 0; i < 50; i++) deep = { inside: deep };
  const wide = Array.from({ length: 1000 }, () => Array.from({ length: 1000 }, () => 'x'));
  const plain = plainFields({ deep, wide, list: Array(100).fill(0), long: 'x'.repeat(100_000) });
  assert.ok(JSON.stringify(plain).length < 30_000);
  assert.match(JSON.stringify(plain['deep']), /<object>/);
  assert.match(plainText('x'.repeat(10_000)), /… \(1808 more\)$/);
});

test('secrets are redacted by name, in a Secret, in an environment and in text', () => {
  const plain = plainFields({
    headers: { Authorization: 'Basic dXNlcjpwYXNz', Accept: '*/*' },
    config: { auths: { 'r.io': { auth: 'dXNlcjpwYXNz' } } },
    object: { kind: 'Secret', metadata: { name: 's' }, data: { any: 'eA==' }, stringData: { any: 'x' } },
    envs: [
      { name: 'DB_PASSWORD', value: 's3cret' },
      { name: 'HOME', value: '/' },
    ],
    automountServiceAccountToken: true,
    token: '',
  });
  assert.deepEqual(plain, {
    headers: { Authorization: '[redacted]', Accept: '*/*' },
    config: { auths: '[redacted]' },
    object: { kind: 'Secret', metadata: { name: 's' }, data: '[redacted]', stringData: '[redacted]' },
    envs: [
      { name: 'DB_PASSWORD', value: '[redacted]' },
      { name: 'HOME', value: '/' },
    ],
    automountServiceAccountToken: true,
    token: '',
  });
});

test('a field called __proto__ is logged like any other', () => {
  const plain = plainFields(JSON.parse('{"__proto__": {"x": 1}}'));
  assert.equal(JSON.stringify(plain), '{"__proto__":{"x":1}}');
});

test('any logged value becomes valid JSON', () => {
  const anything = fc.anything({
    withBigInt: true,
    withDate: true,
    withMap: true,
    withNullPrototype: true,
    withSet: true,
    withTypedArray: true,
  });
  fc.assert(
    fc.property(fc.dictionary(fc.string(), anything), (fields) => {
      const plain = plainFields(fields);
      assert.deepEqual(JSON.parse(JSON.stringify(plain)), JSON.parse(JSON.stringify({ ...plain })));
    }),
  );
});

test('limits the total length of texts and keys in one record', () => {
  const texts = Array.from({ length: 64 }, () => 'x'.repeat(10_000));
  const plain = plainFields({ texts, ['k'.repeat(10_000)]: 1 });
  assert.ok(JSON.stringify(plain).length < 80_000);
  assert.deepEqual((plain['texts'] as string[]).at(-1), '<more>');
});
