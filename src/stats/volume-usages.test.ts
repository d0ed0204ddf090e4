import assert from 'node:assert/strict';
import { test } from 'node:test';
import { aPod } from '../../test/fakes/pods.ts';
import { VirtualClock } from '../../test/fakes/virtual-clock.ts';
import { podUid } from '../pods/index.ts';
import { type MeasuredDirectory, VolumeUsages } from './volume-usages.ts';

const disk = {
  capacityBytes: 1_000,
  availableBytes: 400,
  usedBytes: 600,
  inodes: 100,
  inodesFree: 90,
  inodesUsed: 10,
};
const scratch: MeasuredDirectory = { name: 'scratch', directory: '/s', counts: 'files', isScratch: true };
const claim = { namespace: 'default', name: 'c' };
const data: MeasuredDirectory = {
  name: 'data',
  directory: '/d',
  counts: 'file-system',
  isScratch: false,
  claim,
};

function createHarness() {
  const clock = new VirtualClock();
  const requests: string[] = [];
  /** Directories for which the response about their space waits until the test releases it. */
  const held = new Map<string, PromiseWithResolvers<void>>();
  const answer = async <T>(what: string, value: T) => {
    requests.push(what);
    await held.get(what)?.promise;
    return value;
  };
  const quota: { bytes?: number } = {};
  const places = { now: [scratch, data] };
  const usages = new VolumeUsages({
    clock,
    periodMs: 60_000,
    space: (directory) => answer(`space ${directory}`, disk),
    directories: {
      usagesOf: ([tree]) =>
        answer(`usage ${tree?.path}`, [
          {
            kind: 'counted',
            space: disk,
            usage: { usedBytes: 30, inodesUsed: 3, isComplete: true },
            quotaBytes: quota.bytes,
          } as const,
        ]),
    },
    directoriesOf: () => places.now,
  });
  return { clock, asked: requests, held, quota, places, usages };
}

const pod = aPod({ metadata: { uid: podUid('one') } });
const { signal } = new AbortController();

test('counts the files of volumes on shared disks and reads the file system space of other volumes', async () => {
  const { usages, clock } = createHarness();
  const atMs = clock.now();
  assert.deepEqual(await usages.of(pod, signal), [
    { ...disk, usedBytes: 30, inodesUsed: 3, atMs, name: 'scratch', isScratch: true, claim: undefined },
    { ...disk, atMs, name: 'data', isScratch: false, claim },
  ]);
});

test('measures volumes once per period for all callers, and drops removed pods', async () => {
  const { clock, asked, usages } = createHarness();
  await Promise.all([usages.of(pod, signal), usages.of(pod, signal)]);
  await clock.advance(59_999);
  await usages.of(pod, signal);
  assert.equal(asked.length, 2);
  await clock.advance(1);
  await usages.of(pod, signal);
  assert.equal(asked.length, 4);
  usages.retain([pod]);
  assert.equal(usages.size, 1);
  usages.retain([]);
  assert.equal(usages.size, 0);
});

test('returns volume stats that are new enough without measuring', async () => {
  const { clock, asked, held, usages } = createHarness();
  assert.equal(usages.peek(pod), undefined, 'no stats yet');
  const gate = Promise.withResolvers<void>();
  held.set('space /d', gate);
  const first = usages.of(pod, signal);
  await clock.advance(0);
  assert.equal(usages.peek(pod), undefined, 'the count is in progress');
  gate.resolve();
  assert.deepEqual(usages.peek(pod), undefined);
  assert.deepEqual(await first, usages.peek(pod));
  await clock.advance(59_999);
  assert.deepEqual([usages.peek(pod)?.length, usages.peek(pod, 0)], [2, undefined]);
  await clock.advance(1);
  assert.deepEqual([usages.peek(pod), asked.length], [undefined, 2]);
});

test('omits an unresponsive volume, waits for it only once, and retries later', async () => {
  const { clock, asked, held, usages } = createHarness();
  held.set('space /d', Promise.withResolvers());
  const first = usages.of(pod, signal);
  await clock.advance(2_000);
  const names = (all: readonly { readonly name: string }[]) => all.map(({ name }) => name);
  assert.deepEqual(names(await first), ['scratch']);
  const before = asked.length;
  assert.deepEqual(names(await usages.of(pod, signal)), ['scratch']);
  assert.equal(asked.length, before);
  held.clear();
  await clock.advance(58_000);
  assert.deepEqual(names(await usages.of(pod, signal)), ['scratch', 'data']);
});

test('returns the previous count with its time while a new count runs', async () => {
  const { clock, held, usages } = createHarness();
  const [before] = await usages.of(pod, signal);
  const gate = Promise.withResolvers<void>();
  held.set('usage /s', gate);
  await clock.advance(60_000);
  const again = usages.of(pod, signal);
  await clock.advance(2_000);
  assert.deepEqual((await again)[0], before);
  gate.resolve();
  await clock.advance(0);
  assert.equal((await usages.of(pod, signal))[0]?.atMs, clock.now());
});

test('counts a volume again for a caller that needs current stats', async () => {
  const { clock, asked, usages } = createHarness();
  await usages.of(pod, signal);
  await clock.advance(1_000);
  await usages.of(pod, signal, 1_001);
  assert.equal(asked.length, 2);
  await usages.of(pod, signal, 0);
  assert.equal(asked.length, 4);
});

test('uses the quota accounting of the file system when it is available', async () => {
  const { quota, usages } = createHarness();
  quota.bytes = 4_096;
  const [first] = await usages.of(pod, signal);
  assert.deepEqual([first?.usedBytes, first?.inodesUsed, first?.capacityBytes], [4_096, 3, 1_000]);
});

test('aborting one caller does not affect the other callers', async () => {
  const { clock, held, usages } = createHarness();
  const gate = Promise.withResolvers<void>();
  held.set('space /d', gate);
  const own = new AbortController();
  const first = usages.of(pod, own.signal);
  const second = usages.of(pod, signal);
  own.abort(new Error('enough'));
  await assert.rejects(first, { message: 'enough' });
  gate.resolve();
  await clock.advance(0);
  assert.equal((await second).length, 2);
});

test("finds added and removed volumes at the next count or when the pod's spec changes", async () => {
  const { clock, places, usages } = createHarness();
  const names = (all: readonly { readonly name: string }[] | undefined) => all?.map(({ name }) => name);
  places.now = [];
  assert.deepEqual([await usages.of(pod, signal), usages.peek(pod), usages.size], [[], [], 0]);
  places.now = [scratch];
  assert.equal(usages.peek(pod), undefined);
  assert.deepEqual(names(await usages.of(pod, signal)), ['scratch']);
  places.now = [data];
  assert.deepEqual(names(usages.peek(pod)), ['scratch']);
  const edited = { ...pod, spec: { ...pod.spec } };
  assert.equal(usages.peek(edited), undefined);
  assert.deepEqual(names(await usages.of(edited, signal)), ['data']);
  assert.deepEqual(names(usages.peek(edited)), ['data']);
  places.now = [scratch];
  await clock.advance(60_000);
  assert.equal(usages.peek(edited), undefined);
  assert.deepEqual(names(await usages.of(edited, signal)), ['scratch']);
});
