import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nodeUser } from '../../test/fakes/api-users.ts';
import { aPod } from '../../test/fakes/pods.ts';
import { VirtualClock } from '../../test/fakes/virtual-clock.ts';
import { randomApiFaults, SimulatedApi } from '../../test/simulator/index.ts';
import { apiResources } from '../api/index.ts';
import { collectLogs, seededRandom } from '../lib/index.ts';
import { type Pod, podUid } from '../pods/index.ts';
import { type ChangeDetection, makePodObjects, Services, Tokens } from './index.ts';

const { signal } = new AbortController();
const node = 'node-1';
const { pods, secrets, serviceAccounts, services } = apiResources;

/**
 * Sets up a node whose requests to the simulated API server are authorized as those of a real node.
 */
function createHarness(detection: ChangeDetection = 'Watch', seed = 1) {
  const clock = new VirtualClock();
  const api = new SimulatedApi({ clock, random: seededRandom(seed) });
  const deps = {
    api: api.client(nodeUser(node)),
    clock,
    random: seededRandom(seed),
    logger: collectLogs(clock).logger,
  };
  const objects = makePodObjects(detection, {
    ...deps,
    syncFrequencyMs: 60_000,
    nodeAnnotations: () => undefined,
  });
  const tokens = new Tokens({ ...deps, observer: { answered() {}, waiting() {} } });
  const directory = new Services(deps);
  const end = new AbortController();
  const loops = [objects, tokens, directory].map((part) => part.run(end.signal).catch(() => {}));
  const stop = async () => {
    end.abort(new Error('over'));
    await clock.advance(60_000);
    await Promise.all(loops);
    const held = api.held();
    api.close();
    assert.deepEqual([held, clock.pendingTimers], [{ calls: 0, watches: 0 }, 0]);
  };
  const during = async <T>(work: Promise<T>): Promise<T> => {
    let done = false;
    const end = () => {
      done = true;
    };
    work.then(end, end);
    await clock.advanceUntil(() => done, 600_000);
    return await work;
  };
  return { clock, api, objects, tokens, directory, stop, during };
}

function bound(uid = 'pod-1', name = 'web'): Pod {
  const token = { serviceAccountToken: { path: 'token', expirationSeconds: 3_600 } };
  return aPod({
    metadata: { uid: podUid(uid), name },
    spec: {
      nodeName: node,
      serviceAccountName: 'sa',
      volumes: [
        { name: 'keys', secret: { secretName: 'keys' } },
        { name: 'token', projected: { sources: [token] } },
      ],
    },
  });
}

const secret = (value: string) => ({
  metadata: { namespace: 'default', name: 'keys' },
  data: { value: Buffer.from(value).toString('base64') },
});
const account = (uid: string) => ({ metadata: { namespace: 'default', name: 'sa', uid } });
const ask = (pod: Pod) => ({
  namespace: 'default',
  serviceAccount: 'sa',
  expirationSeconds: 3_600,
  pod: { name: pod.metadata.name, uid: pod.metadata.uid },
});

test("reads the objects of the node's pods, and gets tokens for them", async () => {
  const { api, objects, tokens, directory, clock, stop, during } = createHarness();
  const pod = bound();
  api.put(pods, pod);
  api.put(secrets, secret('x'));
  api.put(serviceAccounts, account('u1'));
  api.put(services, {
    metadata: { namespace: 'default', name: 'kubernetes' },
    spec: { clusterIP: '10.96.0.1', ports: [{ port: 443 }] },
  });
  objects.register(pod);
  const found = await during(objects.secret('default', 'keys', signal));
  assert.equal(Buffer.from(found?.data?.['value'] ?? '', 'base64').toString(), 'x');
  const first = await during(tokens.get(ask(pod), signal));
  assert.deepEqual([first.serviceAccountUid, first.expirationSeconds], ['u1', 3_600]);
  await clock.advance(100);
  const known = directory.known();
  assert.deepEqual(known.state === 'read' && known.services.map(({ metadata }) => metadata?.name), [
    'kubernetes',
  ]);
  objects.unregister(pod.metadata.uid);
  await stop();
});

test('reads an object as soon as the API server permits it', async () => {
  const { api, objects, stop, during } = createHarness();
  const pod = bound();
  api.put(secrets, secret('x'));
  objects.register(pod);
  await assert.rejects(during(objects.secret('default', 'keys', signal)), /no relationship found/);
  api.put(pods, pod);
  let found: unknown;
  for (let tries = 0; found === undefined && tries < 10; tries++) {
    found = await during(objects.secret('default', 'keys', signal)).catch(() => undefined);
  }
  assert.ok(found !== undefined);
  await stop();
});

test('detects a service account that was recreated, and gets new tokens for its pods', async () => {
  const { api, tokens, clock, stop, during } = createHarness();
  const pod = bound();
  const renewed: string[] = [];
  tokens.events.on('renew-pod', ({ uid }) => renewed.push(uid));
  api.put(pods, pod);
  api.put(serviceAccounts, account('u1'));
  await during(tokens.get(ask(pod), signal));
  api.delete({ resource: serviceAccounts, namespace: 'default', name: 'sa' });
  api.put(serviceAccounts, account('u2'));
  await clock.advance(7 * 60_000);
  assert.deepEqual(renewed, ['pod-1']);
  const again = await during(tokens.get(ask(pod), signal));
  assert.equal(again.serviceAccountUid, 'u2');
  await stop();
});

const rates = {
  delay: 0.1,
  refuse: 0.1,
  unreachable: 0.1,
  hang: 0.02,
  lostAnswer: 0.05,
  stale: 0.1,
  eventLate: 0.1,
  eventDuplicated: 0.1,
  watchCut: 0.1,
  watchGone: 0.05,
  watchEnded: 0.05,
};

for (const detection of ['Watch', 'Cache', 'Get'] as const) {
  test(`${detection}: after any failures reads return the current value, and never one older than before`, async () => {
    let struck = 0;
    for (let seed = 1; seed <= 12; seed++) {
      const { api, objects, tokens, clock, stop, during } = createHarness(detection, seed);
      const pod = bound();
      api.put(pods, pod);
      api.put(serviceAccounts, account('u1'));
      api.setFaults(randomApiFaults({ random: seededRandom(seed), rates }));
      objects.register(pod);
      let last = -1;
      for (let round = 0; round < 30; round++) {
        api.put(secrets, secret(`${round}`));
        if (round % 10 === 5) api.compact();
        await clock.advance(20_000);
        const found = await during(objects.secret('default', 'keys', signal)).catch(() => undefined);
        const value = Number(Buffer.from(found?.data?.['value'] ?? '', 'base64').toString() || -1);
        if (value >= 0) assert.ok(value >= last, `seed ${seed}: ${value} after ${last}`);
        if (value >= 0) last = value;
        await during(tokens.get(ask(pod), signal)).catch(() => {});
      }
      struck += Object.values(api.faultsStruck()).reduce((sum, count) => sum + count, 0);
      api.setFaults(undefined);
      await clock.advance(180_000);
      const found = await during(objects.secret('default', 'keys', signal));
      assert.equal(Buffer.from(found?.data?.['value'] ?? '', 'base64').toString(), '29', `seed ${seed}`);
      const token = await during(tokens.get(ask(pod), signal));
      assert.ok(token.expiresMs > clock.now());
      objects.unregister(pod.metadata.uid);
      await stop();
    }
    assert.ok(struck > 30, `${struck} faults`);
  });
}

test('reports change, creation and deletion of a watched object, but not its first state', async () => {
  const clock = new VirtualClock();
  const api = new SimulatedApi({ clock, random: seededRandom(1) });
  const reported: string[] = [];
  const objects = makePodObjects('Watch', {
    api: api.client(nodeUser(node)),
    clock,
    random: seededRandom(1),
    logger: collectLogs(clock).logger,
    syncFrequencyMs: 60_000,
    nodeAnnotations: () => undefined,
    changed: ({ kind, namespace, name }) => reported.push(`${kind} ${namespace}/${name}`),
  });
  const end = new AbortController();
  const running = objects.run(end.signal).catch(() => {});
  const pod = bound();
  api.put(pods, pod);
  api.put(secrets, secret('x'));
  objects.register(pod);
  const first = objects.secret('default', 'keys', signal);
  await clock.advance(5_000);
  await first;
  assert.deepEqual(reported, []);
  api.put(secrets, secret('y'));
  await clock.advance(5_000);
  assert.deepEqual(reported.splice(0), ['secret default/keys']);
  api.delete({ resource: secrets, namespace: 'default', name: 'keys' });
  await clock.advance(5_000);
  assert.deepEqual(reported.splice(0), ['secret default/keys']);
  api.put(secrets, secret('z'));
  await clock.advance(5_000);
  assert.deepEqual(reported, ['secret default/keys']);
  objects.unregister(pod.metadata.uid);
  end.abort(new Error('over'));
  await clock.advance(60_000);
  await running;
  api.close();
});
