import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NodeWorld } from '../../test/fakes/node-world.ts';
import { VirtualClock } from '../../test/fakes/virtual-clock.ts';
import type { NodeAddress } from '../kinds/index.ts';
import { collectLogs, seededRandom } from '../lib/index.ts';
import { NodeController } from './node-controller.ts';
import { PolledAddresses } from './polled-addresses.ts';

type Answer = () => Promise<readonly NodeAddress[]>;
const at = (address: string): NodeAddress => ({ type: 'InternalIP', address });

function polledBy(first: Answer) {
  const script = { answer: first, asked: 0, changes: 0 };
  const clock = new VirtualClock();
  const logs = collectLogs(clock);
  const polled = new PolledAddresses({
    provider: {
      addresses: () => {
        script.asked++;
        return script.answer();
      },
    },
    nodeName: 'n1',
    clock,
    random: seededRandom(1),
    logger: logs.logger,
    changed: () => void script.changes++,
  });
  const controller = new AbortController();
  const ended = polled.run(controller.signal).catch(() => {});
  const stop = async () => {
    controller.abort(new Error('stopped'));
    await ended;
    assert.equal(clock.pendingTimers, 0);
  };
  return { script, clock, logs, polled, stop };
}

test('keeps the last good result, and notifies of changes only', async () => {
  const { script, clock, logs, polled, stop } = polledBy(async () => [at('10.0.0.1')]);
  await clock.advance(11_000);
  assert.deepEqual([polled.latest, script.asked, script.changes], [[at('10.0.0.1')], 2, 1]);
  script.answer = () => Promise.reject(new Error('no quota left'));
  await clock.advance(60_000);
  assert.deepEqual(polled.latest, [at('10.0.0.1')]);
  assert.equal(polled.problem, 'no quota left');
  assert.equal(logs.records.size, 1);
  script.answer = async () => [at('10.0.0.2')];
  await clock.advance(11_000);
  assert.deepEqual([polled.latest, polled.problem, script.changes], [[at('10.0.0.2')], undefined, 2]);
  await stop();
});

test('aborts and retries a call that hangs, and rejects an empty result', async () => {
  const { script, clock, polled, stop } = polledBy(() => new Promise(() => {}));
  await clock.advance(5_000);
  assert.match(polled.problem ?? '', /within 5000 ms/);
  script.answer = async () => [];
  await clock.advance(11_000);
  assert.equal(polled.latest, undefined);
  assert.match(polled.problem ?? '', /returned no address/);
  await stop();
});

test("publishes the provider's addresses as soon as they are known", async () => {
  const world = new NodeWorld();
  let addresses = [at('10.7.0.1')];
  const keeper = new NodeController({ ...world.deps(), addresses: { addresses: async () => addresses } });
  const controller = new AbortController();
  const ended = keeper.run(controller.signal).catch(() => {});
  await world.clock.advance(1_000);
  const told = () => world.api.node()?.status?.addresses?.map(({ address }) => address);
  assert.deepEqual(told(), ['10.7.0.1', 'n1']);
  addresses = [at('10.7.0.2')];
  await world.clock.advance(11_000);
  assert.deepEqual(told(), ['10.7.0.2', 'n1']);
  controller.abort(new Error('stopped'));
  await ended;
});
