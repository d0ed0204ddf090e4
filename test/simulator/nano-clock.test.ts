import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../fakes/virtual-clock.ts';
import { formatNanos, NanoClock, nanosOf } from './nano-clock.ts';

test('timestamps at the same moment differ and increase, and their differences are never too short', async () => {
  const clock = new VirtualClock({ startMs: 1_000 });
  const nanos = new NanoClock(clock);
  const first = nanos.now();
  const second = nanos.now();
  await clock.advance(1);
  const third = nanos.now();
  assert.ok(first < second);
  assert.ok(third - second >= 1_000_000n);
  assert.ok(first >= 1_000_000_000n && first < 1_000_100_000n);
});

test('timestamps stay close to the clock, however many are read', () => {
  const nanos = new NanoClock(new VirtualClock({ startMs: 1_000 }));
  let last = 0n;
  for (let i = 0; i < 250_000; i++) last = nanos.now();
  assert.ok(last < 1_000_100_001n);
});

test('timestamps go back when the wall clock is set back', () => {
  const clock = new VirtualClock({ startMs: 10_000_000 });
  const nanos = new NanoClock(clock);
  const before = nanos.now();
  clock.jumpWall(-3_600_000);
  assert.ok(nanos.now() < before);
});

test('fractions of a millisecond are kept', () => {
  assert.equal(nanosOf(1.5), 1_500_000n);
});

test('a timestamp has no trailing zeros', () => {
  assert.equal(formatNanos(1_767_225_600_000_000_000n), '2026-01-01T00:00:00Z');
  assert.equal(formatNanos(1_767_225_600_120_000_000n), '2026-01-01T00:00:00.12Z');
  assert.equal(formatNanos(1_767_225_600_000_000_001n), '2026-01-01T00:00:00.000000001Z');
});
