import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Ring } from './ring.ts';

test('a full ring drops its oldest items and counts them', () => {
  const ring = new Ring<number>(3);
  for (const item of [1, 2, 3, 4, 5]) ring.push(item);
  assert.deepEqual(ring.toArray(), [3, 4, 5]);
  assert.equal(ring.dropped, 2);
  assert.equal(ring.size, 3);
});

test('shift removes the oldest item of the ring', () => {
  const ring = new Ring<string>(2);
  ring.push('a');
  ring.push('b');
  assert.equal(ring.shift(), 'a');
  assert.equal(ring.shift(), 'b');
  assert.equal(ring.shift(), undefined);
  assert.equal(ring.dropped, 0);
});

test('rejects an invalid ring capacity', () => {
  for (const capacity of [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY]) {
    assert.throws(() => new Ring(capacity), { code: 'BUG' });
  }
});

test('a ring behaves like a list whose first items are dropped', () => {
  const acts = fc.array(fc.oneof(fc.record({ push: fc.integer() }), fc.constantFrom('shift', 'clear')));
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 8 }), acts, (capacity, steps) => {
      const ring = new Ring<number>(capacity);
      let model: number[] = [];
      let dropped = 0;
      for (const step of steps) {
        if (step === 'shift') assert.equal(ring.shift(), model.shift());
        else if (step === 'clear') {
          ring.clear();
          model = [];
        } else {
          ring.push(step.push);
          model.push(step.push);
          if (model.length > capacity) dropped += model.splice(0, 1).length;
        }
        assert.deepEqual(ring.toArray(), model);
        assert.equal(ring.size, model.length);
        assert.equal(ring.dropped, dropped);
      }
    }),
  );
});

test('the newest item of the ring can be read and replaced', () => {
  const ring = new Ring<number>(2);
  assert.equal(ring.last, undefined);
  ring.replaceLast(1);
  ring.push(2);
  ring.push(3);
  ring.replaceLast(4);
  assert.equal(ring.last, 4);
  assert.deepEqual(ring.toArray(), [2, 4]);
});
