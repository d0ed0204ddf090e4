import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { EvictionSignal, EvictionThreshold } from '../../config/index.ts';
import { quantityOf } from '../../lib/index.ts';
import { type Assessment, assessThresholds, noPressure, thresholdsMet } from './assess-thresholds.ts';
import type { Observations } from './observations.ts';

type Parts = Partial<Omit<EvictionThreshold, 'value' | 'minimumReclaim'>> & { readonly reclaim?: number };

function below(amount: number, { reclaim, ...parts }: Parts = {}): EvictionThreshold {
  return {
    signal: 'memory.available',
    kind: (parts.gracePeriodMs ?? 0) > 0 ? 'soft' : 'hard',
    value: { quantity: quantityOf(amount) },
    gracePeriodMs: 0,
    minimumReclaim: reclaim === undefined ? undefined : { quantity: quantityOf(reclaim) },
    ...parts,
  };
}

let stamp = 0;

function left(amounts: Partial<Record<EvictionSignal, number>>, atMs = stamp++): Observations {
  const all = Object.entries(amounts) as [EvictionSignal, number][];
  return new Map(all.map(([signal, available]) => [signal, { atMs, available, capacity: 1_000 }]));
}

/** Evaluates the thresholds with each of the observations, ten seconds apart. */
function rounds(
  thresholds: readonly EvictionThreshold[],
  seen: readonly Observations[],
  transitionMs = 300_000,
): readonly Assessment[] {
  let state = noPressure;
  return seen.map((observations, round) => {
    const assessment = assessThresholds(state, {
      thresholds,
      observations,
      transitionMs,
      nowMs: round * 10_000,
    });
    state = assessment.state;
    return assessment;
  });
}

const acted = (all: readonly Assessment[]) =>
  all.map(({ acting }) => acting.map(({ signal }) => signal).join());
const told = (all: readonly Assessment[]) => all.map(({ conditions }) => conditions.join(' '));
const memory = (...amounts: readonly number[]) =>
  amounts.map((amount) => left({ 'memory.available': amount }));

describe('assessThresholds: when eviction thresholds act', () => {
  it('acts on a hard threshold immediately when the available amount is below it, but not at its exact value', () => {
    assert.deepEqual(acted(rounds([below(100)], memory(100, 99))), ['', 'memory.available']);
    assert.deepEqual(told(rounds([below(100)], memory(100, 99))), ['', 'MemoryPressure']);
  });

  it('acts on a soft threshold after its uninterrupted grace period, and sets the condition immediately', () => {
    const all = rounds([below(100, { gracePeriodMs: 20_000 })], memory(99, 99, 101, 99, 99, 99), 1_000);
    assert.deepEqual(acted(all), ['', '', '', '', '', 'memory.available']);
    assert.deepEqual(told(all), ['MemoryPressure', 'MemoryPressure', '', ...Array(3).fill('MemoryPressure')]);
  });

  it('acts on a threshold until its minimum reclaim is reached', () => {
    const all = rounds([below(100, { reclaim: 50 })], memory(120, 99, 149, 150, 149), 1_000);
    assert.deepEqual(acted(all), ['', 'memory.available', 'memory.available', '', '']);
    assert.deepEqual(told(all), ['', 'MemoryPressure', 'MemoryPressure', '', '']);
  });

  it('ignores the minimum reclaim of a soft threshold whose grace period had not passed', () => {
    const soft = below(100, { gracePeriodMs: 20_000, reclaim: 50 });
    assert.deepEqual(told(rounds([soft], memory(99, 120), 1_000)), ['MemoryPressure', '']);
  });

  it('keeps a node condition for the transition period after its threshold was last met', () => {
    const all = rounds([below(100)], memory(99, 200, 200, 200, 200), 30_000);
    assert.deepEqual(told(all), ['MemoryPressure', 'MemoryPressure', 'MemoryPressure', '', '']);
  });

  it('sets a node condition while its threshold is met even without a transition period', () => {
    assert.deepEqual(told(rounds([below(100)], memory(99, 200), 0)), ['MemoryPressure', '']);
  });

  it('acts on a threshold once per observation, also after the clock was set back', () => {
    const observed = [10, 10, 9].map((atMs) => left({ 'memory.available': 1 }, atMs));
    assert.deepEqual(acted(rounds([below(100)], observed)), ['memory.available', '', 'memory.available']);
  });

  it('ignores thresholds whose signal has no observation', () => {
    assert.deepEqual(acted(rounds([below(100)], [left({})])), ['']);
  });

  it('acts on memory thresholds first, and on hard thresholds before soft ones', () => {
    const thresholds = [
      below(100, { signal: 'nodefs.available' }),
      below(500, { gracePeriodMs: 1 }),
      below(100),
      below(100, { signal: 'pid.available' }),
    ];
    const observed = left({ 'nodefs.available': 1, 'memory.available': 1, 'pid.available': 1 });
    const again = left({ 'nodefs.available': 1, 'memory.available': 1, 'pid.available': 1 });
    const [, last] = rounds(thresholds, [observed, again]);
    assert.deepEqual(
      last?.acting.map(({ signal, kind }) => `${kind} ${signal}`),
      ['hard memory.available', 'soft memory.available', 'hard nodefs.available', 'hard pid.available'],
    );
    assert.deepEqual(last?.conditions, ['MemoryPressure', 'DiskPressure', 'PIDPressure']);
  });

  it('applies a percentage threshold to the capacity', () => {
    const ten = { ...below(0), value: { percent: 10 }, minimumReclaim: { percent: 5 } };
    const met = (available: number, against: 'threshold' | 'reclaim-too') =>
      thresholdsMet([ten], left({ 'memory.available': available }), against).length;
    assert.deepEqual([met(99, 'threshold'), met(100, 'threshold')], [1, 0]);
    assert.deepEqual([met(149, 'reclaim-too'), met(150, 'reclaim-too')], [1, 0]);
  });
});

describe('assessThresholds, for any observations', () => {
  const signals = ['memory.available', 'nodefs.available', 'imagefs.inodesFree', 'pid.available'] as const;
  const threshold = fc
    .record({
      signal: fc.constantFrom(...signals),
      amount: fc.nat(1_000),
      gracePeriodMs: fc.constantFrom(0, 10_000, 35_000),
      reclaim: fc.nat(300),
    })
    .map(({ amount, ...parts }) => below(amount, parts));
  const amounts = fc.record({
    'memory.available': fc.nat(1_000),
    'nodefs.available': fc.nat(1_000),
    'imagefs.inodesFree': fc.nat(1_000),
    'pid.available': fc.nat(1_000),
  });

  it('acts only on thresholds that were met for their complete grace period, and only while a node condition is set', () => {
    fc.assert(
      fc.property(
        fc.array(threshold, { maxLength: 5 }),
        fc.array(amounts, { minLength: 1, maxLength: 20 }),
        (thresholds, story) => {
          const all = rounds(
            thresholds,
            story.map((each) => left(each)),
          );
          for (const [round, { acting, conditions }] of all.entries()) {
            for (const one of acting) {
              const first = round - Math.ceil(one.gracePeriodMs / 10_000);
              assert.ok(first >= 0, 'the grace period has passed');
              const limit = Number((one.value as { quantity: { nanos: bigint } }).quantity.nanos / 10n ** 9n);
              const reclaim = 300;
              for (const each of story.slice(first, round + 1))
                assert.ok(each[one.signal as keyof typeof each] < limit + reclaim);
            }
            assert.ok(acting.length === 0 || conditions.length > 0);
          }
        },
      ),
    );
  });

  it('neither evicts nor sets a condition on a node without pressure', () => {
    fc.assert(
      fc.property(fc.array(threshold), fc.nat(10), (thresholds, count) => {
        const full = Object.fromEntries(signals.map((signal) => [signal, 1_000]));
        const observed = Array.from({ length: count }, () => left(full));
        for (const { acting, conditions } of rounds(thresholds, observed))
          assert.deepEqual([acting, conditions], [[], []]);
      }),
    );
  });
});
