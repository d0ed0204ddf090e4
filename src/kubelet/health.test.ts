import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../test/fakes/virtual-clock.ts';
import { StatusResponse } from '../cri/index.ts';
import { RuntimeState } from '../runtime/index.ts';
import { healthResponse } from '../server/index.ts';
import { livenessChecks, readinessChecks } from './health.ts';

function createHarness() {
  const clock = new VirtualClock();
  const none = undefined as string | undefined;
  const state = { ready: true, pleg: none, down: none, enteredMs: clock.monotonicMs() };
  const runtime = new RuntimeState(clock);
  const conditions = ['RuntimeReady', 'NetworkReady'].map((type) => ({ type, status: true }));
  const well = () => runtime.answered(StatusResponse.create({ status: { conditions } }));
  well();
  const source = {
    clock,
    syncFrequencyMs: 60_000,
    loop: {
      get enteredMs() {
        return state.enteredMs;
      },
    },
    sources: { readiness: () => [{ source: 'file', ready: state.ready }] },
    runtime,
    pleg: { problem: () => state.pleg },
    background: { problem: () => state.down },
  };
  const ready = () =>
    healthResponse(readinessChecks(source), new URLSearchParams('verbose'), {
      name: 'readyz',
      reasons: 'shown',
    });
  const live = () => healthResponse(livenessChecks(source), new URLSearchParams());
  return { clock, state, runtime, ready, live, well };
}

test('reports a node that can sync pods as ready', () => {
  const { ready } = createHarness();
  const names = ['ping', 'sources', 'runtime', 'network', 'pleg', 'background', 'syncloop'];
  assert.deepEqual(ready(), {
    status: 200,
    body: `${names.map((name) => `[+]${name} ok\n`).join('')}readyz check passed\n`,
  });
});

test('reports an unresponsive runtime as unready with the reason, but still as live', async () => {
  const { ready, live, runtime, clock, well, state } = createHarness();
  runtime.failed(new Error('connection refused'));
  assert.equal(ready().status, 500);
  assert.match(ready().body, /^\[-\]runtime failed: container runtime does not answer: connection refused$/m);
  assert.equal(live().status, 200);
  await clock.advance(5 * 60_000 + 1);
  assert.equal(live().status, 500, 'the loop stood still for too long');
  well();
  state.enteredMs = clock.monotonicMs();
  assert.deepEqual([ready().status, live().status], [200, 200]);
});

test('reports sources that are not ready, a PLEG without relists and a stopped background loop as unready', () => {
  const { ready, state, live } = createHarness();
  state.ready = false;
  assert.match(ready().body, /^\[-\]sources failed: the source file has not been read yet$/m);
  state.ready = true;
  state.pleg = 'pleg has yet to be successful';
  assert.match(ready().body, /^\[-\]pleg failed: pleg has yet to be successful$/m);
  [state.pleg, state.down] = [undefined, 'the loop file is down: a bug'];
  assert.match(ready().body, /^\[-\]background failed: the loop file is down: a bug$/m);
  assert.equal(live().status, 200);
});
