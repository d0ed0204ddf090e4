import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';

const worker = join(import.meta.dirname, 'lock-worker.ts');

async function work(dir: string, rounds: number, end: 'live' | 'die'): Promise<string> {
  const child = spawn(process.execPath, [worker, dir, String(rounds), end], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const [code, signal] = await once(child, 'exit');
  return signal ?? String(code);
}

it('lets only one process at a time hold the lock, even when lock holders are killed', {
  timeout: 120_000,
}, async () => {
  const dir = await mkdtemp(join(tmpdir(), 'lock-'));
  try {
    await writeFile(join(dir, 'counter'), '0');
    // All processes start with a stale lock of a dead process.
    const dead = { pid: 2 ** 22 + 1, startTime: 1, bootId: 'before', token: 'dead' };
    await writeFile(join(dir, 'lock'), JSON.stringify(dead));
    const ends = await Promise.all([
      ...[1, 2, 3, 4].map(() => work(dir, 25, 'live')),
      ...[3, 7, 12].map((rounds) => work(dir, rounds, 'die')),
    ]);
    assert.deepEqual(ends, ['0', '0', '0', '0', 'SIGKILL', 'SIGKILL', 'SIGKILL']);
    assert.equal(await work(dir, 1, 'live'), '0');
    assert.equal(await readFile(join(dir, 'counter'), 'utf8'), String(4 * 25 + 3 + 7 + 12 + 1));
    assert.deepEqual(await readdir(dir), ['counter']);
  } finally {
    await rm(dir, { recursive: true });
  }
});
