import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { cpuShares } from '../pods/index.ts';
import { quotaUsToMilliCpu, sharesToMilliCpu, sharesToWeight, weightToShares } from './cgroup-math.ts';

describe('shares', () => {
  it('give back at most what they were made from, and no more than one less', () => {
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 256_000 }), (milli) => {
        const back = sharesToMilliCpu(Number(cpuShares(BigInt(milli))));
        assert.ok(back <= milli && back >= milli - 1, `${milli} became ${back}`);
      }),
    );
  });
});

describe('quota', () => {
  it('gives back the limit', () => {
    assert.equal(quotaUsToMilliCpu(30_000, 100_000), 300);
    assert.equal(quotaUsToMilliCpu(-1, 100_000), 0);
  });
});

describe('weight', () => {
  for (const [shares, weight] of [
    [2, 1],
    [1024, 39],
    [262_144, 10_000],
    [300_000, 10_000],
  ] as const) {
    it(`of ${shares} shares is ${weight}`, () => assert.equal(sharesToWeight(shares), weight));
  }
  it('gives back shares of the same weight', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 10_000 }), (weight) => {
        assert.ok(weight - sharesToWeight(weightToShares(weight)) <= 1);
      }),
    );
  });
});
