import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { byDefault, describeOrigin, fieldPath, keyPath, type Origin, Origins, topField } from './findings.ts';
import { mergeRawValues, type RawMap, type RawValue } from './raw-values.ts';

function asWritten(value: fc.JsonValue | undefined): RawValue {
  if (value === null || value === undefined) return { kind: 'nothing', origin: byDefault };
  if (Array.isArray(value)) return { kind: 'list', items: value.map(asWritten), origin: byDefault };
  if (typeof value !== 'object') return { kind: 'value', value, origin: byDefault };
  return {
    kind: 'map',
    entries: new Map(Object.entries(value).map(([key, item]) => [key, asWritten(item)])),
    origin: byDefault,
  };
}

function asJson(written: RawValue): unknown {
  if (written.kind === 'nothing') return null;
  if (written.kind === 'list') return written.items.map(asJson);
  if (written.kind === 'value') return written.value;
  return Object.fromEntries([...written.entries].map(([key, item]) => [key, asJson(item)]));
}

/** The reference algorithm of RFC 7396, section 2, for plain values. */
function mergePatch(target: unknown, patch: unknown): unknown {
  if (typeof patch !== 'object' || patch === null || Array.isArray(patch)) return patch;
  const isObject = typeof target === 'object' && target !== null && !Array.isArray(target);
  const result = new Map(Object.entries(isObject ? target : {}));
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) result.delete(key);
    else result.set(key, mergePatch(result.get(key), value));
  }
  return Object.fromEntries(result);
}

test('merges layers as specified by RFC 7396', () => {
  const document = fc.dictionary(fc.string({ maxLength: 2 }), fc.jsonValue({ maxDepth: 3 }), { maxKeys: 5 });
  fc.assert(
    fc.property(document, document, (target, patch) => {
      const merged = mergeRawValues(asWritten(target) as RawMap, asWritten(patch) as RawMap);
      assert.deepEqual(asJson(merged), mergePatch(target, patch));
    }),
  );
});

test('finds the origin of a value by its path, or by its nearest parent', () => {
  const file: Origin = { kind: 'file', file: '/a', line: 3, column: 1 };
  const origins = new Origins(
    new Map<string, Origin>([
      ['a', file],
      ['a[x.y]', { kind: 'flag', flag: '--b' }],
    ]),
  );
  assert.equal(describeOrigin(origins.of('a[x.y]')), '--b');
  assert.equal(describeOrigin(origins.of('a[other]')), '/a:3');
  assert.equal(describeOrigin(origins.of('a.b.c')), '/a:3');
  assert.equal(describeOrigin(origins.of('z')), 'default');
  assert.equal(origins.isWritten('z'), false);
  assert.equal(describeOrigin({ kind: 'default', because: 'of it' }), 'default, of it');
  assert.equal(topField('a[x.y].z'), 'a');
  assert.equal(keyPath(fieldPath('', 'a'), 'b'), 'a[b]');
  assert.equal(fieldPath('a', 'b'), 'a.b');
});
