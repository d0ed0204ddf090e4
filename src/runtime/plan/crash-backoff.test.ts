import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { anInstance, anObservedPod } from '../../../test/fakes/observed.ts';
import { aPod } from '../../../test/fakes/pods.ts';
import type { Container } from '../../kinds/index.ts';
import { type BackoffState, seededRandom } from '../../lib/index.ts';
import { type ObservedPod, podUid } from '../../pods/index.ts';
import { CrashBackoff, crashBackoffKey } from './crash-backoff.ts';

const random = seededRandom(1);
const pod = aPod();
const main: Container = { name: 'main', image: 'example/web:1' };
const ended = (atMs: number, exitCode = 1) =>
  anObservedPod({
    containers: [anInstance(main, { state: 'exited', exitCode, finishedAtNs: BigInt(atMs) * 1_000_000n })],
  });

const at = (ms: number) => ({ nowMs: ms, monotonicMs: ms });

/**
 * Records a restart without awaiting its persistence, because the change is effective immediately.
 */
function note(backoff: CrashBackoff, observed: ObservedPod, nowMs: number): void {
  void backoff.recordRestart(pod, main, observed, nowMs);
}

/**
 * Lets the container exit immediately after each start and returns the delays between the restarts.
 */
function waits(backoff: CrashBackoff, times: number, exitCode = 1): number[] {
  let nowMs = 1_000_000;
  return Array.from({ length: times }, () => {
    const endMs = nowMs;
    const delay = backoff.restartDelay(pod, main, ended(endMs, exitCode), at(nowMs));
    nowMs += delay.kind === 'wait' ? delay.waitMs : 0;
    assert.equal(backoff.restartDelay(pod, main, ended(endMs, exitCode), at(nowMs)).kind, 'go');
    note(backoff, ended(endMs, exitCode), nowMs);
    return nowMs - endMs;
  });
}

test('the first restart is immediate, the second after 10 s, then the delay doubles up to five minutes', () => {
  const seconds = waits(new CrashBackoff({ random }), 9).map((ms) => ms / 1000);
  assert.deepEqual(seconds, [0, 10, 20, 40, 80, 160, 300, 300, 300]);
});

test('a container that never ran or is running has no restart delay', () => {
  const backoff = new CrashBackoff({ random });
  assert.deepEqual(backoff.restartDelay(pod, main, anObservedPod(), at(0)), { kind: 'go' });
  const running = anObservedPod({ containers: [anInstance(main)] });
  note(backoff, running, 0);
  assert.deepEqual(backoff.restartDelay(pod, main, running, at(0)), { kind: 'go' });
  assert.equal(backoff.size, 0);
});

test('a container in back-off gets a status message with the delay', () => {
  const backoff = new CrashBackoff({ random });
  note(backoff, ended(0), 0);
  assert.deepEqual(backoff.restartDelay(pod, main, ended(2_000), at(5_000)), {
    kind: 'wait',
    delayMs: 10_000,
    waitMs: 7_000,
    untilMs: 12_000,
    message: 'back-off 10s restarting failed container=main pod=web_default(uid-1)',
    eventMessage: 'Back-off restarting failed container main in pod web_default(uid-1)',
  });
});

test('the maximum back-off delay is formatted in minutes and seconds', () => {
  const backoff = new CrashBackoff({ random });
  for (let n = 0; n < 8; n++) note(backoff, ended(n), n);
  const delay = backoff.restartDelay(pod, main, ended(10), at(10));
  assert.ok(delay.kind === 'wait');
  assert.match(delay.message, /^back-off 5m0s /);
});

test('a container that ran for more than ten minutes restarts without delay', () => {
  const backoff = new CrashBackoff({ random });
  for (let n = 0; n < 5; n++) note(backoff, ended(n), n);
  const endMs = 600_010;
  assert.equal(backoff.restartDelay(pod, main, ended(endMs), at(endMs)).kind, 'go');
  note(backoff, ended(endMs), endMs);
  const delay = backoff.restartDelay(pod, main, ended(endMs + 1), at(endMs + 1));
  assert.ok(delay.kind === 'wait');
  assert.equal(delay.delayMs, 10_000);
});

test('a maximum delay below the base delay also limits the first delay', () => {
  assert.deepEqual(waits(new CrashBackoff({ random, maxMs: 2_000 }), 4), [0, 2_000, 2_000, 2_000]);
  assert.deepEqual(waits(new CrashBackoff({ random, maxMs: 15_000 }), 4), [0, 10_000, 15_000, 15_000]);
});

test('a container that exited with code 0 is delayed too, unless the node disables that', () => {
  assert.deepEqual(waits(new CrashBackoff({ random }), 3, 0), [0, 10_000, 20_000]);
  assert.deepEqual(waits(new CrashBackoff({ random, cleanExits: 'restart-at-once' }), 3, 0), [0, 0, 0]);
});

test('the newest exit determines the delay, not an instance created later that never ran', () => {
  const backoff = new CrashBackoff({ random });
  note(backoff, ended(0), 0);
  const created = anInstance(main, { state: 'created', id: 'newer' });
  const observed = { ...ended(1_000), containers: [created, ...ended(1_000).containers] };
  assert.equal(backoff.restartDelay(pod, main, observed, at(1_000)).kind, 'wait');
});

test('a changed image or changed resources give a new back-off key, a changed order of resources does not', () => {
  const key = crashBackoffKey(pod, { ...main, resources: { limits: { cpu: '1', memory: '1Gi' } } });
  const same = crashBackoffKey(pod, { ...main, resources: { limits: { memory: '1Gi', cpu: '1' } } });
  assert.equal(key, same);
  assert.notEqual(key, crashBackoffKey(pod, main));
  assert.notEqual(crashBackoffKey(pod, { ...main, image: 'example/web:2' }), crashBackoffKey(pod, main));
  assert.notEqual(crashBackoffKey(pod, { ...main, command: ['sh'] }), '');
  assert.equal(crashBackoffKey(pod, { ...main, command: ['sh'] }), crashBackoffKey(pod, main));
});

/** Creates a CrashBackoff and a map of the entries that it persists. */
function keeping() {
  const retained = new Map<string, BackoffState>();
  const backoff = new CrashBackoff({
    random,
    persist: async (uid, entries) => {
      assert.equal(uid, pod.metadata.uid);
      for (const [key, state] of entries) retained.set(key, state);
    },
  });
  return { backoff, kept: retained };
}

test('idle back-off entries are removed, and persisted entries are restored with their delay', () => {
  const { backoff, kept } = keeping();
  note(backoff, ended(0), 0);
  assert.equal(kept.size, 1);
  const second = new CrashBackoff({ random });
  second.restore(kept, 500);
  assert.equal(second.restartDelay(pod, main, ended(1_000), at(1_000)).kind, 'wait');
  assert.equal(second.collect(900_000), 0);
  assert.equal(second.collect(900_001), 1);
  assert.equal(second.size, 0);
});

test('removing idle entries does not shorten a running back-off delay', () => {
  const { backoff } = keeping();
  for (let n = 0; n < 8; n++) note(backoff, ended(n), n);
  const last = ended(500_000);
  assert.equal(backoff.restartDelay(pod, main, last, at(500_000)).kind, 'wait');
  backoff.collect(700_000);
  const delay = backoff.restartDelay(pod, main, last, at(700_000));
  assert.ok(delay.kind === 'wait' && delay.waitMs === 100_000);
});

test('a restored delay is limited to the current maximum', () => {
  const { backoff, kept } = keeping();
  for (let n = 0; n < 8; n++) note(backoff, ended(n), n);
  const strict = new CrashBackoff({ random, maxMs: 20_000 });
  strict.restore(kept, 10);
  const delay = strict.restartDelay(pod, main, ended(10), at(10));
  assert.ok(delay.kind === 'wait' && delay.waitMs === 20_000);
  const later = new CrashBackoff({ random });
  later.restore(kept, 1_000_000);
  assert.equal(later.size, 0, 'idle long enough for a reset');
});

test('setting the wall clock changes no back-off delay', () => {
  for (const jumpMs of [-3_600_000, 3_600_000]) {
    const backoff = new CrashBackoff({ random });
    const before = { nowMs: 10_000_000, monotonicMs: 500 };
    note(backoff, ended(before.nowMs - 100), before.nowMs);
    const last = ended(before.nowMs);
    assert.equal(backoff.restartDelay(pod, main, last, before).kind, 'wait');
    const later = (ms: number) => ({
      nowMs: before.nowMs + jumpMs + ms,
      monotonicMs: before.monotonicMs + ms,
    });
    const on = backoff.restartDelay(pod, main, last, later(6_000));
    assert.ok(on.kind === 'wait' && on.waitMs === 4_000);
    assert.equal(backoff.restartDelay(pod, main, last, later(10_000)).kind, 'go');
  }
});

test('the back-off delay of an exit whose time is in the future starts when the exit is first observed', () => {
  const backoff = new CrashBackoff({ random });
  note(backoff, ended(3_600_000), 3_600_000);
  const last = ended(3_600_100);
  const observed = backoff.restartDelay(pod, main, last, at(200));
  assert.ok(observed.kind === 'wait' && observed.waitMs === 10_000);
  assert.equal(backoff.restartDelay(pod, main, last, at(10_200)).kind, 'go');
});

test('the back-off delay never shrinks while the container runs for at most five minutes between exits', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(300_000), { maxLength: 20 }), (ranMs) => {
      const backoff = new CrashBackoff({ random });
      let [nowMs, last] = [0, 0];
      for (const ran of ranMs) {
        nowMs += ran;
        const delay = backoff.restartDelay(pod, main, ended(nowMs), at(nowMs));
        const waitMs = delay.kind === 'wait' ? delay.delayMs : 0;
        assert.ok(waitMs >= last && waitMs <= 300_000);
        const startMs = nowMs + waitMs;
        note(backoff, ended(nowMs), startMs);
        [nowMs, last] = [startMs, waitMs];
      }
    }),
  );
});

test('a recreated pod with the same UID starts without back-off, and other pods keep their back-off', () => {
  const backoff = new CrashBackoff({ random });
  const other = aPod({ metadata: { uid: podUid('uid-2') } });
  for (const each of [pod, other]) void backoff.recordRestart(each, main, ended(0), 0);
  backoff.forgetPod(pod.metadata.uid);
  assert.equal(backoff.restartDelay(pod, main, ended(10), at(10)).kind, 'go');
  assert.equal(backoff.restartDelay(other, main, ended(10), at(10)).kind, 'wait');
});
