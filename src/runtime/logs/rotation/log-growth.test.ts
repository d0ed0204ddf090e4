import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LogGrowth } from './log-growth.ts';

const limits = { maxBytes: 10_000_000, maxMs: 10_000 };

test('a log that does not grow is checked less often, up to the maximum interval', () => {
  const growth = new LogGrowth(limits, 0);
  const waits: number[] = [];
  for (let at = 0, look = 0; look < 6; look++) {
    waits.push(growth.sampled(100, at));
    at += waits.at(-1) ?? 0;
  }
  assert.deepEqual(waits, [1_000, 2_000, 4_000, 8_000, 10_000, 10_000]);
});

test('a growing log is checked when it is expected to be full', () => {
  const growth = new LogGrowth(limits, 0);
  growth.sampled(0, 0);
  assert.equal(growth.sampled(5_000_000, 10_000), 2_000);
  growth.sampled(5_000_000, 12_000);
  growth.sampled(5_000_000, 16_000);
  assert.equal(growth.sampled(9_000_000, 20_000), 1_000);
});

test('a fast log is checked at most once per minimum interval', () => {
  const growth = new LogGrowth(limits, 0);
  assert.equal(growth.sampled(9_999_999, 10), 100);
  assert.equal(growth.rotated(60_000_000, 110), 100);
});

test('the growth rate of a log is kept after a rotation', () => {
  const growth = new LogGrowth(limits, 0);
  growth.sampled(0, 0);
  growth.sampled(0, 1_000);
  assert.equal(growth.rotated(10_000_000, 3_000), 2_000);
});
