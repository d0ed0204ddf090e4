import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { jitter, pick, randomHex, randomInt, seededRandom, systemRandom } from './random.ts';

test('equal seeds give equal numbers, and different seeds different ones', () => {
  const take = (seed: number) => Array.from({ length: 10 }, seededRandom(seed).next);
  assert.deepEqual(take(42), take(42));
  assert.notDeepEqual(take(42), take(43));
});

test('the numbers of a seed stay the same in every version of kubeling', () => {
  const random = seededRandom(1);
  const first = [random.next(), random.next(), random.next()].map((value) => value.toFixed(6));
  assert.deepEqual(first, ['0.627074', '0.002736', '0.527447']);
});

test('random numbers are in [0, 1) and evenly distributed', () => {
  for (const random of [seededRandom(7), systemRandom()]) {
    const counts = Array<number>(10).fill(0);
    for (let i = 0; i < 20_000; i++) {
      const value = random.next();
      assert.ok(value >= 0 && value < 1);
      const bin = Math.floor(value * 10);
      counts[bin] = (counts[bin] ?? 0) + 1;
    }
    for (const count of counts) assert.ok(count > 1600 && count < 2400);
  }
});

test('random integers, picks, jitter and digits are within their bounds', () => {
  fc.assert(
    fc.property(fc.integer(), fc.integer({ min: 1, max: 1000 }), (seed, bound) => {
      const random = seededRandom(seed);
      const whole = randomInt(random, bound);
      assert.ok(Number.isInteger(whole) && whole >= 0 && whole < bound);
      const items = Array.from({ length: bound }, (_, index) => index);
      assert.ok(items.includes(pick(random, items) ?? -1));
      const stretched = jitter(random, bound, 0.5);
      assert.ok(stretched >= bound && stretched < bound * 1.5);
      assert.match(randomHex(random, bound), new RegExp(`^[0-9a-f]{${bound}}$`));
    }),
  );
});

test('the system source returns no number twice, however many are drawn', () => {
  const random = systemRandom();
  const all = new Set(Array.from({ length: 2_000 }, () => random.next()));
  assert.equal(all.size, 2_000);
});

test('pick returns undefined for an empty list', () => {
  assert.equal(pick(seededRandom(1), []), undefined);
});
