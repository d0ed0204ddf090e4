import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ScriptedApi, serverAway } from '../../test/fakes/scripted-api.ts';
import { VirtualClock } from '../../test/fakes/virtual-clock.ts';
import type { RuntimeClass } from '../kinds/index.ts';
import { cancelledError, collectLogs, seededRandom } from '../lib/index.ts';
import { ApiRuntimeClasses } from './runtime-classes.ts';

const { signal } = new AbortController();

function createHarness(server: 'there' | 'away' = 'there') {
  const clock = new VirtualClock();
  const api = new ScriptedApi();
  if (server === 'away') api.failure = serverAway();
  const { logger } = collectLogs(clock);
  const classes = new ApiRuntimeClasses({ api, clock, random: seededRandom(1), logger });
  const stop = new AbortController();
  const running = classes.run(stop.signal).catch(() => {});
  const find = async (name: string) => {
    const found = classes.find(name, signal).catch((error: Error) => error.message);
    await clock.advance(6_000);
    return await found;
  };
  const end = async () => {
    stop.abort(cancelledError('test ended'));
    await running;
  };
  return { api, find, end };
}

test('maps a RuntimeClass to the handler it names, whatever the name of the class', async () => {
  const { api, find, end } = createHarness();
  api.put<RuntimeClass>('runtimeclasses', { metadata: { name: 'sandboxed' }, handler: 'runsc' });
  assert.deepEqual(await find('sandboxed'), { found: true, handler: 'runsc' });
  assert.deepEqual(await find('runsc'), {
    found: false,
    because: 'runtimeclass.node.k8s.io "runsc" not found',
  });
  api.failure = serverAway();
  assert.deepEqual(await find('sandboxed'), { found: true, handler: 'runsc' });
  await end();
});

test('throws instead of reporting a RuntimeClass as missing before the first list', async () => {
  const { find, end } = createHarness('away');
  assert.equal(await find('sandboxed'), 'the runtime classes have not yet been read');
  await end();
});
