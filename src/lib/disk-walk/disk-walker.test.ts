import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { realClock } from '../clock.ts';
import { KubelingError } from '../errors.ts';
import { DiskWalker, type WalkThreadEvents } from './disk-walker.ts';
import type { TreeResult, WalkRequest } from './messages.ts';
import { RateLimit } from './thread.ts';

const { signal } = new AbortController();
const usage = { usedBytes: 1, inodesUsed: 1, isComplete: true };
const space = { capacityBytes: 9, availableBytes: 8, usedBytes: 1, inodes: 9, inodesFree: 8, inodesUsed: 1 };
const counted: TreeResult = { kind: 'counted', usage, space };

function createHarness() {
  const clock = new VirtualClock();
  const threads: { events: WalkThreadEvents; sent: WalkRequest[]; ended: number }[] = [];
  const walker = new DiskWalker({
    clock,
    check: async (path) => {
      if (path.startsWith('/dead')) throw new KubelingError('MOUNT_SILENT', `${path} does not answer`);
    },
    start: (events) => {
      const thread = { events, sent: [] as WalkRequest[], ended: 0 };
      threads.push(thread);
      return { send: (request) => void thread.sent.push(request), end: () => void thread.ended++ };
    },
  });
  const counts = (thread = threads.at(-1)) =>
    thread?.sent.flatMap((each) => (each.do === 'count' ? [each] : [])) ?? [];
  return { clock, walker, threads, counts };
}

test('one thread serves all callers and exits after it has been idle', async () => {
  const { clock, walker, threads, counts } = createHarness();
  assert.equal(walker.isAwake, false, 'starts no thread before the first request');
  const both = [
    walker.usagesOf([{ path: '/a' }], 1_000, signal),
    walker.usagesOf([{ path: '/b' }], 1_000, signal),
  ];
  await clock.advance(0);
  assert.equal(threads.length, 1);
  for (const { id } of counts()) threads[0]?.events.onReply({ id, results: [counted] });
  assert.deepEqual(await Promise.all(both), [[counted], [counted]]);
  await clock.advance(29_000);
  assert.equal(walker.isAwake, true);
  await clock.advance(2_000);
  assert.deepEqual([walker.isAwake, threads[0]?.ended], [false, 1]);
});

test('does not walk a path on an unresponsive file system, but walks the other paths', async () => {
  const { clock, walker, threads, counts } = createHarness();
  const response = walker.usagesOf([{ path: '/a' }, { path: '/dead/b' }, { path: '/c' }], 1_000, signal);
  await clock.advance(0);
  const [request] = counts();
  assert.deepEqual(
    request?.trees.map(({ path }) => path),
    ['/a', '/c'],
  );
  threads[0]?.events.onReply({ id: request?.id ?? 0, results: [counted, { kind: 'gone' }] });
  assert.deepEqual(
    (await response).map(({ kind }) => kind),
    ['counted', 'failed', 'gone'],
  );
  assert.deepEqual(
    (await walker.usagesOf([{ path: '/dead' }], 1, signal)).map(({ kind }) => kind),
    ['failed'],
  );
});

test('an aborted request stops its own walk only', async () => {
  const { clock, walker, threads, counts } = createHarness();
  const own = new AbortController();
  const first = walker.usagesOf([{ path: '/a' }], 1_000, own.signal);
  const second = walker.usagesOf([{ path: '/b' }], 1_000, signal);
  await clock.advance(0);
  const [one, two] = counts();
  own.abort(new Error('enough'));
  await assert.rejects(first, { message: 'enough' });
  assert.deepEqual(
    threads[0]?.sent.filter(({ do: what }) => what === 'stop'),
    [{ do: 'stop', id: one?.id }],
  );
  threads[0]?.events.onReply({ id: two?.id ?? 0, results: [counted] });
  assert.deepEqual(await second, [counted]);
});

test('abandons threads that are blocked in the kernel, up to a maximum number', async () => {
  const { clock, walker, threads } = createHarness();
  for (const _ of [1, 2]) {
    const stuck = assert.rejects(walker.usagesOf([{ path: '/a' }], 1_000, signal), /is unresponsive/);
    await clock.advance(61_000);
    await stuck;
  }
  assert.equal(threads.length, 2);
  await assert.rejects(walker.usagesOf([{ path: '/a' }], 1_000, signal), /2 threads are blocked/);
  threads[0]?.events.onEnd(new Error('the file system responds again'));
  const again = walker.usagesOf([{ path: '/a' }], 1_000, signal);
  await clock.advance(0);
  assert.equal(threads.length, 3);
  threads[2]?.events.onEnd(new Error('died'));
  await assert.rejects(again, { message: 'died' });
});

test('keeps a thread that responds to pings, however long its walk takes', async () => {
  const { clock, walker, threads, counts } = createHarness();
  const long = walker.usagesOf([{ path: '/a' }], 900_000, signal);
  for (let minute = 0; minute < 10; minute++) {
    await clock.advance(30_000);
    threads[0]?.events.onReply({ id: 0, results: [] });
    await clock.advance(30_000);
  }
  threads[0]?.events.onReply({ id: counts()[0]?.id ?? 0, results: [counted] });
  assert.deepEqual(await long, [counted]);
});

test('a real thread counts real files, reports their file system, and reports missing directories', async () => {
  const path = mkdtempSync(join(tmpdir(), 'klg-walker-'));
  mkdirSync(join(path, 'a'));
  writeFileSync(join(path, 'a/file'), Buffer.alloc(10_000, 1));
  using walker = new DiskWalker({ clock: realClock(), check: async () => {} });
  const [found, gone] = await walker.usagesOf([{ path }, { path: join(path, 'nowhere') }], 30_000, signal);
  assert.ok(found?.kind === 'counted');
  assert.equal(found.usage.inodesUsed, 3);
  assert.ok(
    found.usage.usedBytes >= 10_000 && (found.space?.capacityBytes ?? 0) > (found.space?.availableBytes ?? 0),
  );
  assert.deepEqual([found.usage.isComplete, found.quotaBytes], [true, undefined]);
  assert.deepEqual(gone, { kind: 'gone' });
  rmSync(path, { recursive: true });
});

test('requests beyond the rate limit wait; all callers share the limit', async () => {
  let nowMs = 0;
  const slept: number[] = [];
  const sleep = async (ms: number) => {
    slept.push(ms);
    nowMs += ms;
  };
  const budget = new RateLimit({ monotonicMs: () => nowMs, sleep, perSecond: 1_000, burst: 100 });
  for (let round = 0; round < 11; round++) await budget.spend(100);
  assert.equal(nowMs, 1_000);
  assert.equal(slept[0], 0, 'a few are free');
});
