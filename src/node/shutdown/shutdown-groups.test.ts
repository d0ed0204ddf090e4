import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { byShutdownGroup, shutdownGroups, wholeSeconds } from './shutdown-groups.ts';

const nothing = {
  shutdownGracePeriodMs: 0,
  shutdownGracePeriodCriticalPodsMs: 0,
  shutdownGracePeriodByPodPriority: [],
};

describe('groups of a shutdown', () => {
  it('are none unless asked for, two by the plain times, and else as told', () => {
    assert.deepEqual(shutdownGroups(nothing), []);
    const plain = shutdownGroups({
      ...nothing,
      shutdownGracePeriodMs: 30_000,
      shutdownGracePeriodCriticalPodsMs: 10_000,
    });
    assert.deepEqual(plain, [
      { priority: 0, seconds: 20 },
      { priority: 2_000_000_000, seconds: 10 },
    ]);
    assert.equal(wholeSeconds(plain), 30);
    const told = [
      { priority: 100, shutdownGracePeriodSeconds: 2 },
      { priority: -5, shutdownGracePeriodSeconds: 1 },
    ];
    assert.deepEqual(shutdownGroups({ ...nothing, shutdownGracePeriodByPodPriority: told }), [
      { priority: -5, seconds: 1 },
      { priority: 100, seconds: 2 },
    ]);
  });

  it('have each pod once: in the highest that is not above it, or else in the lowest', () => {
    const priorities = fc.uniqueArray(fc.integer({ min: -9, max: 9 }), { minLength: 1, maxLength: 5 });
    const pods = fc.array(fc.option(fc.integer({ min: -12, max: 12 }), { nil: undefined }));
    fc.assert(
      fc.property(priorities, pods, (all, wanted) => {
        const groups = all.toSorted((a, b) => a - b).map((priority) => ({ priority, seconds: 1 }));
        const divided = byShutdownGroup(
          groups,
          wanted.map((priority) => ({ spec: { priority } })),
        );
        assert.equal(divided.flatMap((group) => group.pods).length, wanted.length);
        for (const { priority: least, pods: members } of divided)
          for (const { spec } of members) {
            const fitting = groups.filter(({ priority }) => priority <= (spec.priority ?? 0));
            assert.equal(least, (fitting.at(-1) ?? groups[0])?.priority);
          }
      }),
    );
  });
});
