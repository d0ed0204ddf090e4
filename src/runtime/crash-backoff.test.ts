import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { anInstance, anObservedPod } from '../../test/fakes/observed.ts';
import { aPod } from '../../test/fakes/pods.ts';
import type { Container } from '../kinds/index.ts';
import { seededRandom } from '../lib/index.ts';
import { CrashBackoff, crashBackoffKey } from './crash-backoff.ts';

const random = seededRandom(1);
const pod = aPod();
const main: Container = { name: 'main', image: 'example/web:1' };
const ended = (atMs: number, exitCode = 1) =>
  anObservedPod({
    containers: [anInstance(main, { state: 'exited', exitCode, finishedAtNs: BigInt(atMs) * 1_000_000n })],
  });

/** Lets the container end at once after each start and tells how long each restart had to wait. */
function waits(backoff: CrashBackoff, times: number, exitCode = 1): number[] {
  let nowMs = 1_000_000;
  return Array.from({ length: times }, () => {
    const endMs = nowMs;
    const delay = backoff.restartDelay(pod, main, ended(endMs, exitCode), nowMs);
    nowMs += delay.kind === 'wait' ? delay.waitMs : 0;
    assert.equal(backoff.restartDelay(pod, main, ended(endMs, exitCode), nowMs).kind, 'go');
    backoff.noteRestart(pod, main, ended(endMs, exitCode), nowMs);
    return nowMs - endMs;
  });
}

test('the first restart is immediate, the second waits 10 s, then it doubles up to five minutes', () => {
  const seconds = waits(new CrashBackoff({ random }), 9).map((ms) => ms / 1000);
  assert.deepEqual(seconds, [0, 10, 20, 40, 80, 160, 300, 300, 300]);
});

test('a container that never ran or runs does not wait', () => {
  const backoff = new CrashBackoff({ random });
  assert.deepEqual(backoff.restartDelay(pod, main, anObservedPod(), 0), { kind: 'go' });
  const running = anObservedPod({ containers: [anInstance(main)] });
  backoff.noteRestart(pod, main, running, 0);
  assert.deepEqual(backoff.restartDelay(pod, main, running, 0), { kind: 'go' });
  assert.equal(backoff.size, 0);
});

test('who waits is told how long and why', () => {
  const backoff = new CrashBackoff({ random });
  backoff.noteRestart(pod, main, ended(0), 0);
  assert.deepEqual(backoff.restartDelay(pod, main, ended(2_000), 5_000), {
    kind: 'wait',
    delayMs: 10_000,
    waitMs: 7_000,
    untilMs: 12_000,
    message: 'back-off 10s restarting failed container=main pod=web_default(uid-1)',
    eventMessage: 'Back-off restarting failed container main in pod web_default(uid-1)',
  });
});

test('the longest wait is written as minutes and seconds', () => {
  const backoff = new CrashBackoff({ random });
  for (let n = 0; n < 8; n++) backoff.noteRestart(pod, main, ended(n), n);
  const delay = backoff.restartDelay(pod, main, ended(10), 10);
  assert.ok(delay.kind === 'wait');
  assert.match(delay.message, /^back-off 5m0s /);
});

test('a container that ran for more than ten minutes starts anew', () => {
  const backoff = new CrashBackoff({ random });
  for (let n = 0; n < 5; n++) backoff.noteRestart(pod, main, ended(n), n);
  const endMs = 600_010;
  assert.equal(backoff.restartDelay(pod, main, ended(endMs), endMs).kind, 'go');
  backoff.noteRestart(pod, main, ended(endMs), endMs);
  const delay = backoff.restartDelay(pod, main, ended(endMs + 1), endMs + 1);
  assert.ok(delay.kind === 'wait');
  assert.equal(delay.delayMs, 10_000);
});

test('a lower maximum lowers the first wait too', () => {
  assert.deepEqual(waits(new CrashBackoff({ random, maxMs: 2_000 }), 4), [0, 2_000, 2_000, 2_000]);
  assert.deepEqual(waits(new CrashBackoff({ random, maxMs: 15_000 }), 4), [0, 10_000, 15_000, 15_000]);
});

test('a clean end waits as well, unless the node is told otherwise', () => {
  assert.deepEqual(waits(new CrashBackoff({ random }), 3, 0), [0, 10_000, 20_000]);
  assert.deepEqual(waits(new CrashBackoff({ random, cleanExits: 'restart-at-once' }), 3, 0), [0, 0, 0]);
});

test('the newest end counts, not an instance that was only created since', () => {
  const backoff = new CrashBackoff({ random });
  backoff.noteRestart(pod, main, ended(0), 0);
  const made = anInstance(main, { state: 'created', id: 'newer' });
  const observed = { ...ended(1_000), containers: [made, ...ended(1_000).containers] };
  assert.equal(backoff.restartDelay(pod, main, observed, 1_000).kind, 'wait');
});

test('another image or other resources make another key, the order of resources does not', () => {
  const key = crashBackoffKey(pod, { ...main, resources: { limits: { cpu: '1', memory: '1Gi' } } });
  const same = crashBackoffKey(pod, { ...main, resources: { limits: { memory: '1Gi', cpu: '1' } } });
  assert.equal(key, same);
  assert.notEqual(key, crashBackoffKey(pod, main));
  assert.notEqual(crashBackoffKey(pod, { ...main, image: 'example/web:2' }), crashBackoffKey(pod, main));
  assert.notEqual(crashBackoffKey(pod, { ...main, command: ['sh'] }), '');
  assert.equal(crashBackoffKey(pod, { ...main, command: ['sh'] }), crashBackoffKey(pod, main));
});

test('what was quiet for long is forgotten, and what is kept can be given to a new one', () => {
  const first = new CrashBackoff({ random });
  first.noteRestart(pod, main, ended(0), 0);
  const second = new CrashBackoff({ random });
  second.restore(first.entries());
  assert.equal(second.restartDelay(pod, main, ended(1_000), 1_000).kind, 'wait');
  assert.equal(second.collect(600_000), 0);
  assert.equal(second.collect(600_001), 1);
  assert.equal(second.size, 0);
});

test('no run of ends makes a wait shorter than the one before, short of a long quiet', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(300_000), { maxLength: 20 }), (ranMs) => {
      const backoff = new CrashBackoff({ random });
      let [nowMs, last] = [0, 0];
      for (const ran of ranMs) {
        nowMs += ran;
        const delay = backoff.restartDelay(pod, main, ended(nowMs), nowMs);
        const waitMs = delay.kind === 'wait' ? delay.delayMs : 0;
        assert.ok(waitMs >= last && waitMs <= 300_000);
        const startMs = nowMs + waitMs;
        backoff.noteRestart(pod, main, ended(nowMs), startMs);
        [nowMs, last] = [startMs, waitMs];
      }
    }),
  );
});
