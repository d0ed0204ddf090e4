import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { KeyedBackoff } from './backoff.ts';
import { seededRandom } from './random.ts';

const crash = { baseMs: 10_000, maxMs: 300_000 };
const second = 1000;
const make = (capacity = 100) => new KeyedBackoff({ policy: crash, random: seededRandom(1), capacity });

test('a new key may be retried immediately', () => {
  assert.equal(make().remainingMs('a', { nowMs: 0 }), 0);
});

test('the first restart is immediate, the second waits ten seconds from the exit', () => {
  const backoff = make();
  assert.equal(backoff.remainingMs('a', { nowMs: 5 * second, eventMs: 4 * second }), 0);
  assert.equal(backoff.fail('a', { nowMs: 5 * second, eventMs: 4 * second }), 10 * second);
  assert.equal(backoff.remainingMs('a', { nowMs: 8 * second, eventMs: 7 * second }), 9 * second);
  assert.equal(backoff.remainingMs('a', { nowMs: 17 * second, eventMs: 7 * second }), 0);
  assert.equal(backoff.fail('a', { nowMs: 17 * second, eventMs: 7 * second }), 20 * second);
});

test('without an event time the delay counts from the last failure', () => {
  const backoff = make();
  backoff.fail('image', { nowMs: 100 * second });
  assert.equal(backoff.remainingMs('image', { nowMs: 103 * second }), 7 * second);
  assert.equal(backoff.remainingMs('image', { nowMs: 110 * second }), 0);
});

test('a failure after a run of more than twice the maximum delay starts again with the base delay', () => {
  const backoff = make();
  backoff.fail('a', { nowMs: 0 });
  backoff.fail('a', { nowMs: 20 * second });
  const exit = 20 * second + 600 * second + 1;
  assert.equal(backoff.remainingMs('a', { nowMs: exit, eventMs: exit }), 0);
  assert.equal(backoff.fail('a', { nowMs: exit, eventMs: exit }), 10 * second);
});

test('a failure of one key does not delay others, and a deleted key starts from the first delay', () => {
  const backoff = make();
  backoff.fail('a', { nowMs: 0 });
  backoff.fail('a', { nowMs: 0 });
  assert.equal(backoff.fail('b', { nowMs: 0 }), 10 * second);
  assert.equal(backoff.state('a')?.delayMs, 20 * second);
  backoff.delete('a');
  assert.equal(backoff.fail('a', { nowMs: 0 }), 10 * second);
});

test('collect removes only keys whose reset time has passed', () => {
  const backoff = make();
  backoff.fail('old', { nowMs: 0 });
  backoff.fail('new', { nowMs: 100 * second });
  assert.equal(backoff.collect(600 * second), 0);
  assert.equal(backoff.collect(601 * second), 1);
  assert.equal(backoff.state('old'), undefined);
  assert.equal(backoff.size, 1);
});

test('restores persisted back-off states', () => {
  const backoff = make();
  backoff.fail('a', { nowMs: 0 });
  const other = make();
  other.restore(backoff.entries());
  assert.equal(other.fail('a', { nowMs: second }), 20 * second);
});

test('any sequence of failures stays within the capacity and the maximum delay', () => {
  const failure = fc.record({ key: fc.nat(20), gap: fc.nat(100_000) });
  fc.assert(
    fc.property(fc.array(failure), (history) => {
      const backoff = make(5);
      let nowMs = 0;
      for (const { key, gap } of history) {
        nowMs += gap;
        backoff.fail(String(key), { nowMs });
        const waitMs = backoff.remainingMs(String(key), { nowMs });
        assert.ok(waitMs >= crash.baseMs && waitMs <= crash.maxMs);
        assert.ok(backoff.size <= 5);
      }
      backoff.collect(nowMs + 600_001);
      assert.equal(backoff.size, 0);
    }),
  );
});
