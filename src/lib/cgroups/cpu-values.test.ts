import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { sharesToWeight, weightToShares } from './cpu-values.ts';

describe('cgroupWeight', () => {
  for (const [shares, weight] of [
    [2, 1],
    [1024, 39],
    [262_144, 10_000],
    [300_000, 10_000],
  ] as const) {
    it(`converts ${shares} CPU shares to the CPU weight ${weight}`, () =>
      assert.equal(sharesToWeight(shares), weight));
  }
  it('converts a CPU weight to CPU shares that convert back to the same weight, or to one that is lower by one', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 10_000 }), (weight) => {
        assert.ok(weight - sharesToWeight(weightToShares(weight)) <= 1);
      }),
    );
  });
});
