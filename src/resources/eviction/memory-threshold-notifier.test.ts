import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { parseQuantity } from '../../lib/index.ts';
import { memoryHeadrooms, watchMemory } from './memory-threshold-notifier.ts';

const MiB = 1 << 20;
const tree = '/sys/fs/cgroup/memory';
const skip = !existsSync(join(tree, 'cgroup.event_control')) && 'the kernel has no memory cgroup v1';

/** A child program that allocates memory as requested on its standard input. */
const eater = 'process.stdin.on("data", (text) => { globalThis.eaten = Buffer.alloc(Number(text), 1); });';

describe('memoryHeadrooms', () => {
  it('returns the margin of memory above each threshold that is not met', () => {
    const value = (text: string) => ({ quantity: parseQuantity(text) });
    const hard = { kind: 'hard', gracePeriodMs: 0, minimumReclaim: undefined } as const;
    const left = (available: number) => ({ atMs: 0, capacity: 1_000, available });
    const rooms = memoryHeadrooms(
      [
        { ...hard, signal: 'memory.available', value: value('100') },
        { ...hard, signal: 'memory.available', value: { percent: 40 } },
        { ...hard, signal: 'allocatableMemory.available', value: value('500') },
        { ...hard, signal: 'nodefs.available', value: value('1') },
      ],
      new Map([
        ['memory.available', left(300)],
        ['allocatableMemory.available', left(800)],
        ['nodefs.available', left(900)],
      ]),
    );
    assert.deepEqual(rooms, [
      { signal: 'memory.available', bytes: 200 },
      { signal: 'allocatableMemory.available', bytes: 300 },
    ]);
  });
});

describe('watchMemory', { skip, timeout: 60_000 }, () => {
  it('notifies once the memory usage of a cgroup has grown by the given amount, not before', async (t) => {
    const directory = join(tree, `kubeling-alarm-${process.pid}`);
    mkdirSync(directory);
    const child = spawn(process.execPath, ['-e', eater], { stdio: ['pipe', 'inherit', 'inherit'] });
    t.after(async () => {
      child.kill('SIGKILL');
      await once(child, 'exit');
      rmdirSync(directory);
    });
    writeFileSync(join(directory, 'cgroup.procs'), String(child.pid));
    const grown = Promise.withResolvers<void>();
    const tooEarly = watchMemory([{ directory, bytes: 4_096 * MiB }], () => assert.fail('nothing grew'));
    const watched = watchMemory([{ directory, bytes: 32 * MiB }], grown.resolve);
    child.stdin.write(String(64 * MiB));
    await grown.promise;
    watched[Symbol.dispose]();
    tooEarly[Symbol.dispose]();
  });

  it('watchMemory reports a missing cgroup', () => {
    assert.throws(() => watchMemory([{ directory: join(tree, 'none'), bytes: 1 }], () => {}), /ENOENT/);
  });
});
