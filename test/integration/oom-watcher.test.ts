import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import {
  collectLogs,
  detectCgroupLayout,
  randomHex,
  realCgroupHost,
  realClock,
  systemRandom,
} from '../../src/lib/index.ts';
import {
  CgroupManager,
  hostKernelLog,
  type LogPosition,
  OomWatcher,
  type PodOom,
} from '../../src/resources/index.ts';
import { eventually } from '../kubeling-node.ts';

const clock = realClock();
const random = systemRandom();
const signal = new AbortController().signal;

function readable(): boolean {
  try {
    hostKernelLog().open()[Symbol.dispose]();
    return process.getuid?.() === 0;
  } catch {
    return false;
  }
}

describe('out-of-memory reports of the kernel log', {
  skip: readable() ? false : 'needs root and a readable kernel log',
}, () => {
  const uid = `aaaaaaaa-${randomHex(random, 4)}-4bbb-8ccc-000000000001`;
  const id = randomHex(random, 64);
  const root = [`klgtest-${randomHex(random, 6)}`];
  const container = [...root, 'kubepods', `pod${uid}`, id];
  let cgroups: CgroupManager;
  let noted: LogPosition | undefined;
  let reported: PodOom[] = [];

  before(async () => {
    const host = realCgroupHost();
    cgroups = new CgroupManager({ host, layout: await detectCgroupLayout(host), driver: 'cgroupfs', clock });
    await cgroups.create(container, { memoryBytes: 32 * 2 ** 20 }, signal);
  });
  after(() => cgroups.destroy(root, signal));

  /**
   * Runs the OOM watcher; reports of other processes that run out of memory during the test are
   * ignored.
   */
  async function watching(during: () => Promise<void>): Promise<void> {
    reported = [];
    const watcher = new OomWatcher({
      log: hostKernelLog(),
      note: {
        read: async () => noted,
        write: async (position) => {
          noted = position;
        },
      },
      readBoot: () => readFile('/proc/sys/kernel/random/boot_id', 'utf8'),
      clock,
      logger: collectLogs(clock).logger,
      systemOom: () => {},
      podOom: (oom) => void (oom.uid === uid && reported.push(oom)),
    });
    const stop = new AbortController();
    const running = watcher.run(stop.signal);
    try {
      await during();
    } finally {
      stop.abort(new Error('over'));
      await running;
    }
  }

  async function runOutOfMemory(): Promise<void> {
    const script =
      'process.stdin.once("data", () => { const kept = []; for (;;) kept.push(Buffer.alloc(1e6, 1)); })';
    const child = spawn(process.execPath, ['-e', script], { stdio: ['pipe', 'ignore', 'ignore'] });
    const ended = once(child, 'exit');
    await cgroups.attach(container, child.pid ?? 0);
    child.stdin.write('go\n');
    await ended;
  }

  it('reports the container whose process was killed for lack of memory', async () => {
    await watching(async () => {
      await eventually('a checkpoint of the log position', async () => noted);
      await runOutOfMemory();
      await eventually('the news', async () => reported[0]);
    });
    const [oom] = reported;
    assert.deepEqual([oom?.containerId, oom?.limit, reported.length], [id, 'container', 1]);
  });

  it('continues reading the kernel log after a restart without repeating or missing an entry', async () => {
    const before = noted;
    await runOutOfMemory();
    await watching(async () => {
      await eventually('the news', async () => reported[0]);
    });
    assert.equal(reported.length, 1);
    assert.ok((noted?.sequence ?? 0) > (before?.sequence ?? 0));
    assert.equal(noted?.boot, before?.boot);
  });
});
