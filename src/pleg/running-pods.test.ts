import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MemoryLister } from '../../test/fakes/memory-lister.ts';
import { VirtualClock } from '../../test/fakes/virtual-clock.ts';
import type { RuntimePod } from '../pods/index.ts';
import { RunningPods } from './running-pods.ts';

const never = new AbortController().signal;

test('get uses a listing that is at most three seconds old, and refresh lists the pods again', async () => {
  const clock = new VirtualClock();
  const runtime = new MemoryLister();
  const running = new RunningPods(clock, runtime);
  runtime.set('a', 'web', 'running');
  runtime.set('b', 'dead', 'exited');
  assert.deepEqual(
    (await running.get(never)).map(({ uid }) => uid),
    ['a'],
  );
  runtime.set('b', 'alive', 'running');
  await clock.advance(2_999);
  assert.equal((await running.get(never)).length, 1);
  assert.equal((await running.refresh(never)).length, 2);
  assert.equal((await running.get(never)).length, 2);
  runtime.set('a', 'web', undefined);
  await clock.advance(3_000);
  assert.equal((await running.get(never)).length, 1);
  assert.equal(runtime.calls.length, 3);
});

test('concurrent callers share one listing and its failure', async () => {
  const runtime = new MemoryLister();
  const running = new RunningPods(new VirtualClock(), runtime);
  await Promise.all([running.get(never), running.get(never)]);
  assert.equal(runtime.calls.length, 1);
  runtime.beforeList = async () => {
    throw new Error('away');
  };
  await assert.rejects(running.refresh(never), /away/);
});

test('get returns only running containers, and refresh all containers of pods that may run', async () => {
  const clock = new VirtualClock();
  const runtime = new MemoryLister();
  const running = new RunningPods(clock, runtime);
  runtime.set('crashing', 'sandbox', 'running');
  runtime.set('crashing', 'web', 'exited');
  runtime.set('running', 'db', 'running');
  runtime.set('running', 'init', 'exited');
  runtime.set('lost', 'unknown', 'unknown');
  const told = (pods: readonly RuntimePod[]) =>
    pods.map(({ uid, containers }) => `${uid}: ${containers.map(({ id }) => id).join(' ')}`);
  assert.deepEqual(told(await running.get(never)), ['crashing: ', 'running: db']);
  assert.deepEqual(told(await running.refresh(never)), [
    'crashing: web',
    'running: db init',
    'lost: unknown',
  ]);
});
