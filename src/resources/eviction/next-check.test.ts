import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { EvictionSignal, EvictionThreshold } from '../../config/index.ts';
import { quantityOf } from '../../lib/index.ts';
import { nextCheckMs } from './assess-thresholds.ts';
import type { Observations } from './observations.ts';

const threshold = (signal: EvictionSignal): EvictionThreshold => ({
  signal,
  kind: 'hard',
  value: { quantity: quantityOf(100) },
  gracePeriodMs: 0,
  minimumReclaim: undefined,
});

function seen(signal: EvictionSignal, available: number, atMs = 0): Observations {
  return new Map([[signal, { atMs, available, capacity: 10_000 }]]);
}

function waitMs(signal: EvictionSignal, available: number, before = available, elapsedMs = 10_000): number {
  return nextCheckMs([threshold(signal)], seen(signal, available, elapsedMs), seen(signal, before));
}

describe('nextCheckMs: when to evaluate thresholds again', () => {
  it('evaluates every second while memory is near a threshold', () => {
    assert.equal(waitMs('memory.available', 5_000), 10_000);
    assert.equal(waitMs('memory.available', 600), 10_000);
    assert.equal(waitMs('memory.available', 599), 1_000);
    assert.equal(waitMs('allocatableMemory.available', 0), 1_000);
  });

  it('checks every second if a threshold would be met before the next round at the current rate', () => {
    assert.equal(waitMs('nodefs.available', 2_000, 3_900), 10_000);
    assert.equal(waitMs('nodefs.available', 2_000, 3_901), 1_000);
    assert.equal(
      waitMs('nodefs.available', 2_000, 2_191, 1_000),
      1_000,
      'from observations at a short interval',
    );
    assert.equal(waitMs('nodefs.available', 2_000, 1_000), 10_000, 'more is available than before');
    assert.equal(waitMs('nodefs.available', 2_000, 9_000, 0), 10_000, 'one observation gives no rate');
  });

  it('waits for the normal interval when there are no observations', () => {
    assert.equal(nextCheckMs([threshold('memory.available')], new Map(), new Map()), 10_000);
    assert.equal(nextCheckMs([], seen('memory.available', 0), new Map()), 10_000);
  });
});
