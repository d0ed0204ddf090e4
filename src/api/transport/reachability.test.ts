import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { collectLogs } from '../../lib/index.ts';
import { Reachability } from './reachability.ts';

function createHarness() {
  const clock = new VirtualClock();
  const reach = new Reachability(clock, collectLogs(clock).logger);
  let returns = 0;
  const listening = reach.onReturn(() => returns++);
  return { clock, reach, listening, returns: () => returns };
}

test('reports a recovery once, after a period without responses', async () => {
  const { clock, reach, returns } = createHarness();
  reach.succeeded();
  assert.equal(returns(), 0);
  reach.failed();
  await clock.advance(5_000);
  reach.failed();
  reach.succeeded();
  reach.succeeded();
  assert.equal(returns(), 1);
});

test('does not treat one failure between successful requests as an outage', async () => {
  const { clock, reach, returns } = createHarness();
  for (let time = 0; time < 10; time++) {
    reach.failed();
    await clock.advance(300);
    reach.succeeded();
  }
  assert.equal(returns(), 0);
});

test('does not notify a disposed listener', async () => {
  const { clock, reach, listening, returns } = createHarness();
  reach.failed();
  await clock.advance(2_000);
  listening[Symbol.dispose]();
  reach.succeeded();
  assert.equal(returns(), 0);
});
