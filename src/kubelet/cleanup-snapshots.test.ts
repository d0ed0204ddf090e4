import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../test/fakes/virtual-clock.ts';
import { cancelledError, collectLogs } from '../lib/index.ts';
import { podUid } from '../pods/index.ts';
import { CleanupSnapshots, type SnapshotDeps } from './cleanup-snapshots.ts';
import { ticker } from './input-mux.ts';

const uid = podUid('u1');

function createHarness(change: Partial<SnapshotDeps> = {}) {
  const clock = new VirtualClock();
  const { logger, records } = collectLogs(clock);
  const order: string[] = [];
  const noted = <T>(what: string, value: T) => {
    order.push(what);
    return value;
  };
  const snapshots = new CleanupSnapshots({
    clock,
    logger,
    tick: ticker(clock, 2_000),
    podsWithWorker: () => noted('workers', new Set([uid])),
    podCgroups: async () => noted('cgroups', new Map([[uid, []]])),
    runningPods: async () => noted('running', []),
    podDirectories: async () => noted('directories', [uid]),
    ...change,
  });
  const end = new AbortController();
  return { clock, records, order, snapshots, end };
}

test('a snapshot lists the cgroups before the pods of the runtime and the directories', async () => {
  const { snapshots, clock, order, end } = createHarness();
  const next = snapshots.next(end.signal);
  await clock.advance(2_000);
  const { withWorker, withCgroup, running, directories } = (await next) ?? {};
  assert.deepEqual(
    [withWorker, withCgroup, running, directories],
    [new Set([uid]), new Set([uid]), [], [uid]],
  );
  assert.deepEqual(order, ['workers', 'cgroups', 'running', 'directories']);
});

test('logs an unresponsive runtime once, and its recovery once', async () => {
  let away = true;
  const { snapshots, clock, records, end } = createHarness({
    runningPods: async () => (away ? Promise.reject(new Error('refused')) : []),
  });
  for (let round = 0; round < 5; round++) {
    const next = snapshots.next(end.signal);
    await clock.advance(2_000);
    away = round < 2;
    assert.equal((await next)?.running === undefined, round < 3);
  }
  assert.deepEqual(
    [...records].map(({ message }) => message),
    ['Housekeeping removes nothing: cannot list running pods', 'Housekeeping can list running pods again'],
  );
});

test('delivers no snapshot when the cgroups cannot be listed', async () => {
  let fails = 2;
  const { snapshots, clock, end } = createHarness({
    podCgroups: async () => (fails-- > 0 ? Promise.reject(new Error('EIO')) : new Map()),
  });
  const next = snapshots.next(end.signal);
  let got = false;
  void next.then(() => {
    got = true;
  });
  await clock.advance(4_000);
  assert.equal(got, false);
  await clock.advance(2_000);
  assert.equal(got, true);
});

test('does not list directories again while a disk hangs, and delivers the snapshot without them', async () => {
  let looks = 0;
  const { snapshots, clock, end } = createHarness({
    podDirectories: () => {
      looks++;
      return new Promise(() => {});
    },
  });
  for (let round = 0; round < 3; round++) {
    const next = snapshots.next(end.signal);
    await clock.advance(40_000);
    assert.equal((await next)?.directories, undefined);
  }
  assert.equal(looks, 1);
  const last = snapshots.next(end.signal);
  end.abort(cancelledError('the test ends'));
  await assert.rejects(last, /the test ends/);
  assert.equal(clock.pendingTimers, 0);
});
