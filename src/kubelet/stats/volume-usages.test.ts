import assert from 'node:assert/strict';
import { test } from 'node:test';
import { aPod } from '../../../test/fakes/pods.ts';
import { VirtualClock } from '../../lib/index.ts';
import { podUid } from '../../pods/index.ts';
import { type VolumePlace, VolumeUsages } from './volume-usages.ts';

const disk = {
  capacityBytes: 1_000,
  availableBytes: 400,
  usedBytes: 600,
  inodes: 100,
  inodesFree: 90,
  inodesUsed: 10,
};
const scratch: VolumePlace = { name: 'scratch', directory: '/s', counts: 'files', isScratch: true };
const claim = { namespace: 'default', name: 'c' };
const data: VolumePlace = { name: 'data', directory: '/d', counts: 'file-system', isScratch: false, claim };

function rig() {
  const clock = new VirtualClock();
  const asked: string[] = [];
  const dead = new Set<string>();
  const answer = async <T>(what: string, value: T) => {
    asked.push(what);
    return dead.has(what) ? await new Promise<never>(() => {}) : value;
  };
  const usages = new VolumeUsages({
    clock,
    periodMs: 60_000,
    space: (directory) => answer(`space ${directory}`, disk),
    files: {
      usageIn: (directory) => answer(`usage ${directory}`, { usedBytes: 30, inodesUsed: 3 }),
    },
    placesOf: () => [scratch, data],
  });
  return { clock, asked, dead, usages };
}

const pod = aPod({ metadata: { uid: podUid('one') } });
const { signal } = new AbortController();

test('what lies on a disk that others write to is counted, anything else is asked of its file system', async () => {
  const { usages, clock } = rig();
  const atMs = clock.now();
  assert.deepEqual(await usages.of(pod, signal), [
    { ...disk, usedBytes: 30, inodesUsed: 3, atMs, name: 'scratch', isScratch: true, claim: undefined },
    { ...disk, atMs, name: 'data', isScratch: false, claim },
  ]);
});

test('it is counted once a period, however many ask, and forgotten with the pod', async () => {
  const { clock, asked, usages } = rig();
  await Promise.all([usages.of(pod, signal), usages.of(pod, signal)]);
  await clock.advance(59_999);
  await usages.of(pod, signal);
  assert.equal(asked.length, 3);
  await clock.advance(1);
  await usages.of(pod, signal);
  assert.equal(asked.length, 6);
  usages.retain([pod]);
  assert.equal(usages.size, 1);
  usages.retain([]);
  assert.equal(usages.size, 0);
});

test('one that does not answer is left out, and not asked again in the period', async () => {
  const { clock, asked, dead, usages } = rig();
  dead.add('space /d');
  const first = usages.of(pod, signal);
  await clock.advance(30_000);
  assert.deepEqual(
    (await first).map(({ name }) => name),
    ['scratch'],
  );
  const before = asked.length;
  assert.equal((await usages.of(pod, signal)).length, 1);
  assert.equal(asked.length, before);
});

test('who gives up takes nothing from others', async () => {
  const { dead, usages } = rig();
  dead.add('space /d');
  const own = new AbortController();
  const first = usages.of(pod, own.signal);
  own.abort(new Error('enough'));
  await first;
  dead.clear();
  assert.equal((await usages.of(pod, signal)).length, 2);
});
