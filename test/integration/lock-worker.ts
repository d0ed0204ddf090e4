import { mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ProcessTable, realClock, systemRandom, withLockFile } from '../../src/lib/index.ts';

/**
 * Increments a counter in a file while holding the lock, and reports when another process holds the
 * lock at the same time. Usage: `node lock-worker.ts DIR ROUNDS END`; with END `live` the process
 * exits normally, with `die` it is killed in the last round while holding the lock.
 */
const [dir = '', rounds = '', end = ''] = process.argv.slice(2);
const clock = realClock();
const deps = { clock, random: systemRandom(), processes: new ProcessTable(), waitMs: 60_000 };
const signal = new AbortController().signal;

for (let left = Number(rounds); left > 0; left--) {
  await withLockFile(join(dir, 'lock'), deps, () => countUp(left === 1 && end === 'die'), signal);
}

async function countUp(isLast: boolean): Promise<void> {
  mkdirSync(join(dir, 'inside'));
  const counted = Number(readFileSync(join(dir, 'counter'), 'utf8'));
  await clock.sleep(1, signal);
  writeFileSync(join(dir, 'counter'), String(counted + 1));
  rmdirSync(join(dir, 'inside'));
  if (isLast) process.kill(process.pid, 'SIGKILL');
}
