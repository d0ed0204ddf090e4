import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { StatusResponse } from '../../cri/index.ts';
import { cancelledError, HintLatch } from '../../lib/index.ts';
import { RuntimeState, watchRuntime } from './runtime-state.ts';

const good = StatusResponse.create({
  status: {
    conditions: [
      { type: 'RuntimeReady', status: true },
      { type: 'NetworkReady', status: true },
    ],
  },
});

test('reports a runtime that never responded as a problem with its reason', () => {
  const state = new RuntimeState(new VirtualClock());
  assert.match(state.problems().runtime.join(), /may not have completed yet$/);
  state.failed(new Error('connection refused'));
  assert.match(state.problems().runtime.join(), /may not have completed yet: connection refused$/);
});

test('a successful runtime status is valid for thirty seconds', async () => {
  const clock = new VirtualClock();
  const state = new RuntimeState(clock);
  state.answered(good);
  await clock.advance(29_999);
  state.failed(new Error('gone'));
  assert.deepEqual(state.problems(), { runtime: [], network: [] });
  await clock.advance(1);
  assert.deepEqual(state.problems().runtime, ['container runtime is down: gone']);
  state.answered(good);
  assert.deepEqual(state.problems(), { runtime: [], network: [] });
});

test('distinguishes a network that is not ready from a runtime that is not ready', () => {
  const state = new RuntimeState(new VirtualClock());
  state.answered(
    StatusResponse.create({
      status: {
        conditions: [
          { type: 'RuntimeReady', status: true },
          {
            type: 'NetworkReady',
            status: false,
            reason: 'NetworkPluginNotReady',
            message: 'cni plugin not initialized',
          },
        ],
      },
    }),
  );
  assert.deepEqual(state.problems().runtime, []);
  assert.deepEqual(state.problems().network, [
    'container runtime network is not ready: NetworkPluginNotReady: cni plugin not initialized',
  ]);
});

test('reads the runtime status every five seconds, also after failures, until it is aborted', async () => {
  const clock = new VirtualClock();
  const state = new RuntimeState(clock);
  const controller = new AbortController();
  const looks: string[] = [];
  let calls = 0;
  const cri = {
    status: async () => {
      calls++;
      if (calls === 2) throw new Error('away');
      return good;
    },
  };
  const watching = watchRuntime(
    { cri, clock, state, looked: (error) => looks.push(error === undefined ? 'good' : 'bad') },
    controller.signal,
  );
  await clock.advance(10_000);
  assert.deepEqual(looks, ['good', 'bad', 'good']);
  controller.abort(cancelledError('enough'));
  await watching;
  assert.equal(clock.pendingTimers, 0);
});

test('a hint that the runtime may have changed triggers an immediate status call', async () => {
  const clock = new VirtualClock();
  const state = new RuntimeState(clock);
  const hints = new HintLatch(clock);
  const controller = new AbortController();
  let away = false;
  const cri = { status: async () => (away ? Promise.reject(new Error('gone')) : good) };
  const watching = watchRuntime({ cri, clock, state, looked: () => {}, hints }, controller.signal);
  await clock.advance(1);
  assert.deepEqual(state.readiness(), { runtime: [], network: [] });
  away = true;
  hints.raise();
  await clock.advance(1);
  assert.deepEqual(state.readiness().runtime, ['container runtime does not answer: gone']);
  assert.deepEqual(state.problems().runtime, [], 'pods are worked on for a while yet');
  controller.abort(cancelledError('enough'));
  await watching;
  assert.equal(clock.pendingTimers, 0);
});

test('a runtime that does not respond is reported before the call times out', async () => {
  const clock = new VirtualClock();
  const state = new RuntimeState(clock);
  state.answered(good);
  state.asked();
  await clock.advance(5_000);
  assert.deepEqual(state.readiness().runtime, []);
  await clock.advance(2_000);
  assert.deepEqual(state.readiness().runtime, ['container runtime has not answered for 7s']);
  state.answered(good);
  assert.deepEqual(state.readiness().runtime, []);
});

test('a hanging runtime is reported as unavailable after ten seconds', async () => {
  const clock = new VirtualClock();
  const state = new RuntimeState(clock);
  const controller = new AbortController();
  const looks: unknown[] = [];
  let response: Promise<StatusResponse> = new Promise(() => {});
  const cri = { status: () => response };
  const watching = watchRuntime(
    { cri, clock, state, looked: (error) => looks.push(error) },
    controller.signal,
  );
  await clock.advance(9_999);
  assert.deepEqual(looks, []);
  await clock.advance(1);
  assert.match(String(looks), /Cannot ask the container runtime how it is within 10000 ms/);
  assert.match(state.readiness().runtime.join(), /container runtime does not answer: Cannot ask/);
  response = Promise.resolve(good);
  await clock.advance(5_000);
  assert.equal(looks.at(-1), undefined);
  controller.abort(cancelledError('enough'));
  await watching;
  assert.equal(clock.pendingTimers, 0);
});

test('the features of the runtime are undefined until it has reported them', () => {
  const state = new RuntimeState(new VirtualClock());
  assert.deepEqual(state.abilities, { handlers: new Map(), strictGroups: false });
  state.answered(good);
  assert.deepEqual(state.abilities, { handlers: new Map(), strictGroups: false });
  state.answered(
    StatusResponse.create({
      runtimeHandlers: [{ name: '', features: { userNamespaces: true } }, { name: 'old' }],
      features: { supplementalGroupsPolicy: true },
    }),
  );
  assert.equal(state.abilities.strictGroups, true);
  assert.deepEqual(state.abilities.handlers.get(''), { userNamespaces: true, recursiveReadOnly: false });
  assert.deepEqual(state.abilities.handlers.get('old'), { userNamespaces: false, recursiveReadOnly: false });
});
