import { mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ProcessTable, realClock, systemRandom, withLockFile } from '../../src/lib/index.ts';

/**
 * Counts up in a file under the lock and reports when another process holds it too: `node
 * lock-worker.ts DIR ROUNDS END`, where END is `live`, or `die` to be killed in the last round with
 * the lock held.
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
