import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ScriptedApi, serverAway } from '../../test/fakes/scripted-api.ts';
import { settle, VirtualClock } from '../../test/fakes/virtual-clock.ts';
import type { Service } from '../kinds/index.ts';
import { collectLogs, seededRandom } from '../lib/index.ts';
import { Services } from './services.ts';

function createHarness(failure?: Error) {
  const clock = new VirtualClock();
  const api = new ScriptedApi();
  api.failure = failure;
  const services = new Services({ api, clock, random: seededRandom(1), logger: collectLogs(clock).logger });
  const end = new AbortController();
  const ended = services.run(end.signal).catch(() => 'ended');
  const stop = () => {
    end.abort(new Error('over'));
    return ended;
  };
  const put = (name: string) => api.put<Service>('services', aService(name));
  const names = () => {
    const known = services.known();
    return known.state === 'unread' ? known.state : known.services.map(({ metadata }) => metadata?.name);
  };
  return { clock, api, services, put, names, stop };
}

const aService = (name: string): Service => ({
  metadata: { name, namespace: 'ns', labels: { app: name }, annotations: { long: 'story' } },
  spec: {
    clusterIP: '10.0.0.1',
    selector: { app: name },
    ports: [{ name: 'http', port: 80, protocol: 'TCP', nodePort: 30_000 }],
  },
  status: {},
});

test('watches services with a cluster IP in all namespaces', async () => {
  const { api, put, names } = createHarness();
  put('a');
  await settle();
  assert.deepEqual(names(), ['a']);
  put('b');
  await settle();
  assert.deepEqual(names(), ['a', 'b']);
  api.remove('services', 'ns/a');
  await settle();
  assert.deepEqual(names(), ['b']);
  const [query] = api.queries;
  assert.deepEqual([query?.fieldSelector, query?.namespace], ['spec.clusterIP!=None', undefined]);
});

test('reports services as not read until the first response, and as read afterwards, even while the API server is unavailable', async () => {
  const { clock, api, put, names, stop } = createHarness(serverAway());
  await clock.advance(10_000);
  assert.equal(names(), 'unread');
  api.failure = undefined;
  put('a');
  await clock.advance(60_000);
  assert.deepEqual(names(), ['a']);
  api.failure = serverAway();
  await clock.advance(3_600_000);
  assert.deepEqual(names(), ['a']);
  assert.equal(await stop(), 'ended');
  assert.deepEqual(names(), ['a']);
  assert.deepEqual([api.watches, clock.pendingTimers], [0, 0]);
});

test('reports services as read after an empty list of services', async () => {
  const { names } = createHarness();
  await settle();
  assert.deepEqual(names(), []);
});

test('caches only the service fields that environment variables need', async () => {
  const { services, put } = createHarness();
  put('a');
  await settle();
  const known = services.known();
  assert.deepEqual(known.state === 'read' ? known.services : [], [
    {
      metadata: { name: 'a', namespace: 'ns', uid: 'uid-101', resourceVersion: '101' },
      spec: { clusterIP: '10.0.0.1', ports: [{ name: 'http', port: 80, protocol: 'TCP' }] },
    },
  ]);
});
