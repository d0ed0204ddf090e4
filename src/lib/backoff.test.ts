import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Backoff, backoffDelayMs } from './backoff.ts';
import { seededRandom } from './random.ts';

const crash = { baseMs: 10_000, maxMs: 300_000 };

test('delays start at the base, double, and stop at the maximum', () => {
  const delays = [1, 2, 3, 4, 5, 6, 7, 100, 10_000].map((failures) => backoffDelayMs(crash, failures) / 1000);
  assert.deepEqual(delays, [10, 20, 40, 80, 160, 300, 300, 300, 300]);
});

test('the delay grows by the configured factor, and a factor of one keeps it constant', () => {
  assert.equal(backoffDelayMs({ baseMs: 1, maxMs: 100, factor: 3 }, 4), 27);
  assert.equal(backoffDelayMs({ baseMs: 5, maxMs: 100, factor: 1 }, 9), 5);
});

test('the delay grows with consecutive failures, and a success resets it', () => {
  const backoff = new Backoff({ baseMs: 100, maxMs: 5000 }, seededRandom(1));
  assert.deepEqual([backoff.fail(0), backoff.fail(100), backoff.fail(300)], [100, 200, 400]);
  assert.equal(backoff.failures, 3);
  backoff.reset();
  assert.equal(backoff.fail(400), 100);
});

test('a failure that follows the previous one after more than twice the maximum delay counts as the first', () => {
  const backoff = new Backoff(crash, seededRandom(1));
  backoff.fail(0);
  assert.equal(backoff.fail(600_000), 20_000);
  assert.equal(backoff.fail(1_200_001), 10_000);
});

test('the reset time can be configured apart from the maximum', () => {
  const backoff = new Backoff({ baseMs: 1000, maxMs: 5000, resetAfterMs: 600_000 }, seededRandom(1));
  backoff.fail(0);
  assert.equal(backoff.fail(500_000), 2000);
});

test('rejects an invalid policy and names every invalid field', () => {
  assert.throws(
    () => new Backoff({ baseMs: -1, maxMs: -2, factor: 0.5 }, seededRandom(1)),
    (error: Error) =>
      ['baseMs', 'maxMs', 'factor'].every((name) => error.message.includes(`${name} must be`)),
  );
  assert.throws(() => new Backoff({ baseMs: Number.NaN, maxMs: 1 }, seededRandom(1)), /baseMs/);
});

test('without a reset the delay before jitter never shrinks, and jitter stays within its bounds', () => {
  const policies = fc.record({
    baseMs: fc.integer({ min: 1, max: 1000 }),
    maxMs: fc.integer({ min: 1000, max: 100_000 }),
    factor: fc.double({ min: 1, max: 5, noNaN: true }),
    jitter: fc.double({ min: 0, max: 1, noNaN: true }),
  });
  fc.assert(
    fc.property(policies, fc.integer(), fc.array(fc.nat(1000)), (policy, seed, gaps) => {
      const backoff = new Backoff(policy, seededRandom(seed));
      let nowMs = 0;
      let last = 0;
      for (const gap of gaps) {
        nowMs += gap;
        const delay = backoff.fail(nowMs);
        const plain = backoffDelayMs(policy, backoff.failures);
        assert.ok(plain >= last);
        assert.ok(delay >= plain && delay <= plain * (1 + policy.jitter));
        assert.ok(delay >= policy.baseMs && delay <= policy.maxMs * (1 + policy.jitter));
        last = plain;
      }
    }),
  );
});
