import assert from 'node:assert/strict';
import { test } from 'node:test';
import { aPod } from '../../test/fakes/pods.ts';
import { settle as quiet, VirtualClock } from '../../test/fakes/virtual-clock.ts';
import { collectLogs } from '../lib/index.ts';
import { type Pod, podUid } from '../pods/index.ts';
import type { Admission, Judgement } from '../resources/index.ts';
import { AdmissionDesk } from './admission-desk.ts';

const waits: Judgement = { kind: 'wait-for-room', refusal: { reason: 'OutOfcpu', message: 'no room' } };
const called = (name: string): Pod => aPod({ metadata: { name, uid: podUid(name) } });

function rig() {
  const clock = new VirtualClock();
  const logs = collectLogs(clock);
  const answers = new Map<string, PromiseWithResolvers<Admission>>();
  const signals = new Map<string, AbortSignal>();
  const desk = new AdmissionDesk({
    clock,
    logger: logs.logger,
    judge: () => waits,
    released: () => {},
    judgeResize: () => undefined,
    settle: (pod, _judgement, signal) => {
      const answer = Promise.withResolvers<Admission>();
      answers.set(pod.metadata.name, answer);
      signals.set(pod.metadata.name, signal);
      return answer.promise;
    },
  });
  const told: string[] = [];
  const begin = (name: string) =>
    desk.settle(called(name), waits, (one) => told.push(`${name} ${one.admit ? 'yes' : one.reason}`));
  return { clock, desk, answers, signals, told, begin };
}

test('each pod is told by itself, whoever came first', async () => {
  const { desk, answers, told, begin } = rig();
  begin('a');
  begin('b');
  assert.deepEqual([...desk.after(podUid('a'))], ['b']);
  assert.deepEqual([...desk.after(podUid('b'))], []);
  answers.get('b')?.resolve({ admit: true });
  await quiet();
  assert.deepEqual(told, ['b yes']);
  assert.equal(desk.isSettling(podUid('b')), false);
  assert.equal(desk.isSettling(podUid('a')), true);
  answers.get('a')?.resolve({ admit: false, reason: 'OutOfcpu', message: 'no room' });
  await quiet();
  assert.deepEqual(told, ['b yes', 'a OutOfcpu']);
});

test('of one that is dropped nobody hears, and what is done for it ends', async () => {
  const { desk, answers, signals, told, begin } = rig();
  begin('a');
  desk.drop(podUid('a'));
  assert.equal(signals.get('a')?.aborted, true);
  answers.get('a')?.resolve({ admit: true });
  await quiet();
  assert.deepEqual(told, []);
});

test('what fails in a way nobody expected refuses the pod and says so', async () => {
  const { answers, told, begin } = rig();
  begin('a');
  answers.get('a')?.reject(new Error('what?'));
  await quiet();
  assert.deepEqual(told, ['a UnexpectedAdmissionError']);
});

test('one that is judged anew is told once', async () => {
  const { clock, answers, told, begin, desk } = rig();
  begin('a');
  const first = answers.get('a');
  begin('a');
  first?.resolve({ admit: true });
  answers.get('a')?.resolve({ admit: true });
  await quiet();
  assert.deepEqual(told, ['a yes']);
  await desk[Symbol.asyncDispose]();
  assert.equal(clock.pendingTimers, 0);
});
