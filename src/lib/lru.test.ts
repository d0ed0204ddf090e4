import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { LruMap } from './lru.ts';

test('evicts the least recently used entry', () => {
  const evicted: string[] = [];
  const map = new LruMap<string, number>({ capacity: 2, onEvict: (key) => evicted.push(key) });
  map.set('a', 1);
  map.set('b', 2);
  map.get('a');
  map.set('c', 3);
  assert.deepEqual(
    [...map],
    [
      ['a', 1],
      ['c', 3],
    ],
  );
  assert.deepEqual(evicted, ['b']);
});

test('peek does not count as use, and delete does not report an eviction', () => {
  const map = new LruMap<string, number>({ capacity: 2, onEvict: (key) => assert.equal(key, 'a') });
  map.set('a', 1);
  map.set('b', 2);
  assert.equal(map.peek('a'), 1);
  map.set('c', 3);
  assert.equal(map.has('a'), false);
  assert.equal(map.delete('b'), true);
  assert.equal(map.delete('b'), false);
});

test('an undefined value counts as an entry', () => {
  const map = new LruMap<string, undefined>({ capacity: 2 });
  map.set('a', undefined);
  map.set('b', undefined);
  map.get('a');
  map.set('c', undefined);
  assert.equal(map.has('a'), true);
});

test('the LRU map behaves like a list in order of use', () => {
  const act = fc.record({
    act: fc.constantFrom('get', 'set', 'delete', 'peek'),
    key: fc.nat(6),
    value: fc.nat(),
  });
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 4 }), fc.array(act), (capacity, steps) => {
      const map = new LruMap<number, number>({ capacity });
      let model: [number, number][] = [];
      for (const { act, key, value } of steps) {
        const found = model.find(([at]) => at === key);
        const rest = model.filter(([at]) => at !== key);
        if (act === 'get') {
          assert.equal(map.get(key), found?.[1]);
          if (found) model = [...rest, found];
        } else if (act === 'set') {
          map.set(key, value);
          model = [...rest, [key, value] as [number, number]].slice(-capacity);
        } else if (act === 'delete') {
          assert.equal(map.delete(key), found !== undefined);
          model = rest;
        } else assert.equal(map.peek(key), found?.[1]);
        assert.deepEqual([...map], model);
        assert.ok(map.size <= capacity);
      }
    }),
  );
});
