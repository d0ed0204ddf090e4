import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, beforeEach, describe, it } from 'node:test';
import { VirtualClock } from '../../test/fakes/virtual-clock.ts';
import { seededRandom } from './index.ts';
import { type LockDeps, withLockFile } from './lock-file.ts';
import { ProcessTable } from './processes.ts';

const signal = new AbortController().signal;
const created: string[] = [];
let dir = '';
let clock = new VirtualClock();

/**
 * A fake /proc, in which the boot ID is "now" and this process was started at clock tick 100 after
 * boot.
 */
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'lock-'));
  created.push(dir);
  clock = new VirtualClock();
  await mkdir(join(dir, 'proc/sys/kernel/random'), { recursive: true });
  await writeFile(join(dir, 'proc/sys/kernel/random/boot_id'), 'now\n');
  await addProcess(process.pid, 100);
});
after(async () => {
  for (const path of created) await rm(path, { recursive: true });
});

async function addProcess(pid: number, startTime: number, state = 'S'): Promise<void> {
  await mkdir(join(dir, 'proc', String(pid)), { recursive: true });
  await writeFile(
    join(dir, 'proc', String(pid), 'stat'),
    `${pid} (node) ${state} 1 ${'0 '.repeat(17)}${startTime} 0`,
  );
  await writeFile(join(dir, 'proc', String(pid), 'cmdline'), 'node\0');
}

function deps(seed = 1): LockDeps {
  return { clock, random: seededRandom(seed), processes: new ProcessTable(join(dir, 'proc')), waitMs: 1000 };
}

const lock = () => join(dir, 'lock');
const leaveLock = (owner: unknown) => writeFile(lock(), JSON.stringify(owner));

async function assertTakenOver(): Promise<void> {
  assert.equal(await withLockFile(lock(), deps(), async () => 'worked', signal), 'worked');
  assert.deepEqual(await readdir(dir), ['proc']);
}

describe('withLockFile', () => {
  it("holds a lock file with the owner's identity during the work, and removes it after success and failure", async () => {
    await withLockFile(
      lock(),
      deps(),
      async () => {
        const { token, ...owner } = JSON.parse(await readFile(lock(), 'utf8'));
        assert.deepEqual(owner, { pid: process.pid, startTime: 100, bootId: 'now' });
        assert.match(token, /^[0-9a-f]{16,}$/);
        assert.deepEqual((await readdir(dir)).toSorted(), ['lock', 'proc']);
      },
      signal,
    );
    const failing = withLockFile(lock(), deps(), () => Promise.reject(new Error('the work failed')), signal);
    await assert.rejects(failing, /the work failed/);
    assert.deepEqual(await readdir(dir), ['proc']);
  });

  it('replaces a lock whose owner has exited', async () => {
    await leaveLock({ pid: 4242, startTime: 5, bootId: 'now', token: 'aa' });
    await assertTakenOver();
  });

  it("replaces a lock whose owner's PID was reused", async () => {
    await addProcess(4242, 999);
    await leaveLock({ pid: 4242, startTime: 5, bootId: 'now', token: 'aa' });
    await assertTakenOver();
  });

  it('replaces a lock of a previous boot, and the lock of a zombie', async () => {
    await leaveLock({ pid: process.pid, startTime: 100, bootId: 'before', token: 'aa' });
    await assertTakenOver();
    await addProcess(4242, 5, 'Z');
    await leaveLock({ pid: 4242, startTime: 5, bootId: 'now', token: 'aa' });
    await assertTakenOver();
  });

  it('replaces a lock that is empty after a crash of the machine', async () => {
    await writeFile(lock(), '');
    await assertTakenOver();
  });

  it('replaces the lock of a process that exited while it replaced another lock', async () => {
    await leaveLock({ pid: 4242, startTime: 5, bootId: 'now', token: 'aa' });
    await writeFile(`${lock()}.aa`, JSON.stringify({ pid: 4243, startTime: 6, bootId: 'now', token: 'bb' }));
    await assertTakenOver();
  });

  it("does not replace a dead owner's lock while another live process replaces it", async () => {
    await addProcess(4243, 6);
    await leaveLock({ pid: 4242, startTime: 5, bootId: 'now', token: 'aa' });
    await writeFile(`${lock()}.aa`, JSON.stringify({ pid: 4243, startTime: 6, bootId: 'now', token: 'bb' }));
    await refusedAfterWait();
  });

  it('waits for a live owner up to its limit and names it in the error', async () => {
    await addProcess(4243, 6);
    await leaveLock({ pid: 4243, startTime: 6, bootId: 'now', token: 'bb' });
    await refusedAfterWait();
  });

  it('acquires the lock when the owner releases it', async () => {
    const order: string[] = [];
    const finish = Promise.withResolvers<void>();
    const work = (name: string, wait: Promise<void>) => async () => {
      order.push(`${name} in`);
      await wait;
      order.push(`${name} out`);
    };
    const first = withLockFile(lock(), deps(1), work('first', finish.promise), signal);
    await until(() => order.length === 1);
    const second = withLockFile(lock(), deps(2), work('second', Promise.resolve()), signal);
    await until(() => clock.pendingTimers > 0);
    finish.resolve();
    await first;
    await stepUntilSettled(second);
    assert.deepEqual(order, ['first in', 'first out', 'second in', 'second out']);
  });

  it('stops waiting for the lock when aborted', async () => {
    await addProcess(4243, 6);
    await leaveLock({ pid: 4243, startTime: 6, bootId: 'now', token: 'bb' });
    const controller = new AbortController();
    const waiting = withLockFile(lock(), deps(), async () => {}, controller.signal);
    const refused = assert.rejects(waiting, /enough/);
    await until(() => clock.pendingTimers > 0);
    controller.abort(new Error('enough'));
    await refused;
  });
});

async function refusedAfterWait(): Promise<void> {
  const waiting = withLockFile(lock(), deps(), async () => {}, signal);
  const refused = assert.rejects(waiting, {
    code: 'LOCK_HELD',
    message: /within 1000 ms as process 4243 holds it/,
  });
  await stepUntilSettled(waiting.catch(() => {}));
  await refused;
}

/**
 * File operations need real time, so the fake clock advances only when no other work is pending.
 */
async function stepUntilSettled(work: Promise<unknown>): Promise<void> {
  let isSettled = false;
  const observed = work.finally(() => {
    isSettled = true;
  });
  while (!isSettled) {
    if (clock.pendingTimers > 0) await clock.advance(100);
    else await new Promise((resolve) => setImmediate(resolve));
  }
  await observed;
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve));
}
