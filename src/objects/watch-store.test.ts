import assert from 'node:assert/strict';
import { test } from 'node:test';
import { aPod } from '../../test/fakes/pods.ts';
import { ScriptedApi, serverAway } from '../../test/fakes/scripted-api.ts';
import { settle, VirtualClock } from '../../test/fakes/virtual-clock.ts';
import type { ConfigMap } from '../kinds/index.ts';
import { collectLogs, seededRandom } from '../lib/index.ts';
import { podUid } from '../pods/index.ts';
import { type ChangeDetection, makePodObjects } from './pod-objects.ts';
import { WatchStore } from './watch-store.ts';

function createHarness(detection: ChangeDetection = 'Watch', syncFrequencyMs = 60_000) {
  const clock = new VirtualClock();
  const api = new ScriptedApi();
  const objects = makePodObjects(detection, {
    api,
    clock,
    random: seededRandom(1),
    logger: collectLogs(clock).logger,
    syncFrequencyMs,
    nodeAnnotations: () => undefined,
  });
  const { signal } = new AbortController();
  const put = (value: string, more: ConfigMap = {}) =>
    api.put<ConfigMap>('configmaps', {
      ...more,
      metadata: { namespace: 'default', name: 'n' },
      data: { value },
    });
  const read = async (inner: AbortSignal = signal) =>
    (await objects.configMap('default', 'n', inner))?.data?.['value'];
  const watched = () => api.asked.filter((line) => line === 'watch configmaps default/n').length;
  const end = new AbortController();
  const ended = objects.run(end.signal).catch(() => 'ended');
  const stop = () => {
    end.abort(new Error('over'));
    return ended;
  };
  return { clock, api, objects, put, read, watched, stop };
}

const pod = (uid = 'one', name = 'n') =>
  aPod({ metadata: { uid: podUid(uid) }, spec: { volumes: [{ name: 'v', configMap: { name } }] } });

test('rejects reading an object that no pod refers to', async () => {
  const { objects, put, read } = createHarness();
  put('x');
  await assert.rejects(read(), {
    code: 'OBJECT_NOT_REGISTERED',
    message: 'object "default"/"n" not registered',
  });
  objects.register(pod());
  assert.equal(await read(), 'x');
  await assert.rejects(objects.secret('default', 'n', new AbortController().signal), {
    code: 'OBJECT_NOT_REGISTERED',
  });
});

test('shares one watch of an object between all pods and readers, and starts it when the object is registered', async () => {
  const { api, objects, put, read, watched } = createHarness();
  put('x');
  objects.register(pod('one'));
  objects.register(pod('two'));
  await settle();
  assert.equal(watched(), 1);
  assert.deepEqual(await Promise.all([read(), read()]), ['x', 'x']);
  put('y');
  await settle();
  assert.equal(await read(), 'y');
  assert.deepEqual([watched(), api.watches], [1, 1]);
  const [query] = api.queries;
  assert.equal(query?.fieldSelector, 'metadata.name=n');
  assert.ok((query?.timeoutSeconds ?? 0) >= 1_800 && (query?.timeoutSeconds ?? 0) <= 3_600);
});

test('stops the watch of an object when the last pod that refers to it is removed', async () => {
  const { api, objects, put, read } = createHarness();
  put('x');
  objects.register(pod('one'));
  objects.register(pod('two'));
  await read();
  objects.unregister(podUid('one'));
  await settle();
  assert.equal(api.watches, 1);
  assert.equal(await read(), 'x');
  objects.unregister(podUid('two'));
  await settle();
  assert.equal(api.watches, 0);
  await assert.rejects(read(), { code: 'OBJECT_NOT_REGISTERED' });
});

test('stops the watch of an object to which a pod no longer refers', async () => {
  const { api, objects, put, read } = createHarness();
  put('x');
  objects.register(pod('one', 'n'));
  await read();
  objects.register(pod('one', 'other'));
  await settle();
  assert.equal(api.watches, 1);
  await assert.rejects(read(), { code: 'OBJECT_NOT_REGISTERED' });
});

test('returns undefined for a missing object, and returns the object as soon as it is created', async () => {
  const { objects, put, read, api } = createHarness();
  objects.register(pod());
  assert.equal(await read(), undefined);
  put('x');
  await settle();
  assert.equal(await read(), 'x');
  api.remove('configmaps', 'default/n');
  await settle();
  assert.equal(await read(), undefined);
});

test('waits at most a second for the first response of an unavailable API server', async () => {
  const { clock, api, objects, put, read } = createHarness();
  api.failure = serverAway();
  objects.register(pod());
  const failed = assert.rejects(read(), {
    code: 'OBJECT_UNSYNCED',
    message:
      'failed to sync configmap cache: timed out waiting for the condition: Cannot reach the server: HTTP status 503',
  });
  await clock.advance(999);
  assert.equal(await Promise.race([failed.then(() => 'failed'), settle().then(() => 'waits')]), 'waits');
  await clock.advance(1);
  await failed;
  api.failure = undefined;
  put('x');
  await clock.advance(60_000);
  assert.equal(await read(), 'x');
});

for (const [called, answersMs, outcome] of [
  ['late', 9_000, 'x'],
  ['never', 60_000, 'failed to sync configmap cache: timed out waiting for the condition'],
] as const)
  test(`waits up to ten seconds for a busy API server that responds ${called}`, async () => {
    const clock = new VirtualClock();
    const { logger } = collectLogs(clock);
    let hasSynced = false;
    const followed = {
      get hasSynced() {
        return hasSynced;
      },
      current: undefined as ConfigMap | undefined,
      problem: undefined,
      async waitForSync(signal: AbortSignal) {
        await clock.sleep(answersMs - clock.monotonicMs(), signal);
        hasSynced = true;
        followed.current = { data: { value: 'x' } };
      },
      start() {},
      stop: async () => {},
      [Symbol.asyncDispose]: async () => {},
    };
    const store = new WatchStore<ConfigMap>({
      clock,
      logger,
      kind: 'configmap',
      follow: () => followed,
      syncFrequencyMs: 60_000,
    });
    const object = { namespace: 'default', name: 'n' };
    store.add(object, podUid('one'));
    const read = store.get(object, new AbortController().signal).then(
      (found) => found?.data?.['value'],
      (error) => error.message,
    );
    await clock.advance(8_999);
    assert.equal(await Promise.race([read, settle().then(() => 'waits')]), 'waits');
    await clock.advance(1_001);
    assert.equal(await read, outcome);
  });

test('returns immediately from a cancelled read', async () => {
  const { api, objects, read } = createHarness();
  api.failure = serverAway();
  objects.register(pod());
  const own = new AbortController();
  const failed = assert.rejects(read(own.signal), /enough/);
  own.abort(new Error('enough'));
  await failed;
});

test('a read fails with the error "not registered" when the last pod that refers to the object is removed during the read', async () => {
  const { clock, api, objects, read } = createHarness();
  api.failure = serverAway();
  objects.register(pod());
  const failed = assert.rejects(read(), { code: 'OBJECT_NOT_REGISTERED' });
  await settle();
  objects.unregister(podUid('one'));
  await clock.advance(1_000);
  await failed;
});

test('caches an immutable object and stops its watch', async () => {
  const { clock, api, objects, put, read, watched } = createHarness();
  put('x', { immutable: true });
  objects.register(pod());
  assert.equal(await read(), 'x');
  await settle();
  assert.equal(api.watches, 0);
  api.failure = serverAway();
  await clock.advance(3_600_000);
  assert.equal(await read(), 'x');
  assert.equal(watched(), 1);
});

test('stops the watch of an object that becomes immutable', async () => {
  const { api, objects, put, read } = createHarness();
  put('x');
  objects.register(pod());
  await read();
  assert.equal(api.watches, 1);
  put('y', { immutable: true });
  await settle();
  assert.equal(await read(), 'y');
  await settle();
  assert.equal(api.watches, 0);
});

for (const [syncFrequencyMs, idleMs] of [
  [60_000, 300_000],
  [1_000, 60_000],
] as const) {
  test(`stops the watch of an object that was not read for ${idleMs / 1_000} s when pods are synced every ${syncFrequencyMs / 1_000} s`, async () => {
    const { clock, api, objects, put, read, watched, stop } = createHarness('Watch', syncFrequencyMs);
    put('x');
    objects.register(pod());
    await read();
    await clock.advance(idleMs);
    assert.equal(api.watches, 1);
    await clock.advance(60_000);
    assert.equal(api.watches, 0);
    put('y');
    assert.equal(await read(), 'y');
    assert.equal(watched(), 2);
    await stop();
  });
}

test('keeps the watch of an object that is read', async () => {
  const { clock, api, objects, put, read, stop } = createHarness();
  put('x');
  objects.register(pod());
  for (let minutes = 0; minutes < 25; minutes += 4) {
    await clock.advance(4 * 60_000);
    await read();
  }
  assert.equal(api.watches, 1);
  await stop();
});

test('does not stop the watch of an idle object before its first response', async () => {
  const { clock, api, objects, put, read, stop } = createHarness();
  api.failure = serverAway();
  objects.register(pod());
  await clock.advance(30 * 60_000);
  const tries = api.asked.length;
  await clock.advance(10 * 60_000);
  assert.ok(api.asked.length > tries + 5, 'it is still retried');
  api.failure = undefined;
  put('x');
  await clock.advance(60_000);
  assert.equal(await read(), 'x');
  await stop();
});

test('serves the cached object while the API server is unavailable, even if the watch of the object was stopped because nothing read the object', async () => {
  const { clock, api, objects, put, read, stop } = createHarness();
  put('x');
  objects.register(pod());
  await read();
  await clock.advance(360_000);
  assert.equal(api.watches, 0);
  api.failure = serverAway();
  const old = read();
  await clock.advance(1_000);
  assert.equal(await old, 'x');
  api.failure = undefined;
  put('y');
  await clock.advance(60_000);
  assert.equal(await read(), 'y');
  await stop();
});

test('restarts the watch of an object that is read while its watch stops', async () => {
  const clock = new VirtualClock();
  const steps: string[] = [];
  const stopped = Promise.withResolvers<void>();
  const followed = {
    hasSynced: true,
    current: { data: { value: 'x' } },
    problem: undefined,
    waitForSync: async () => {},
    start() {
      steps.push('start');
      followed.hasSynced = true;
    },
    async stop() {
      steps.push('stop');
      followed.hasSynced = false;
      await stopped.promise;
      steps.push('stopped');
    },
    [Symbol.asyncDispose]: async () => {},
  };
  const { logger } = collectLogs(clock);
  const store = new WatchStore<ConfigMap>({
    clock,
    logger,
    kind: 'configmap',
    follow: () => followed,
    syncFrequencyMs: 1_000,
  });
  const end = new AbortController();
  const running = store.run(end.signal).catch(() => {});
  const object = { namespace: 'ns', name: 'n' };
  store.add(object, podUid('one'));
  await clock.advance(120_000);
  const read = store.get(object, new AbortController().signal);
  await settle();
  assert.deepEqual(steps, ['start', 'stop']);
  stopped.resolve();
  assert.deepEqual(await read, { data: { value: 'x' } });
  assert.deepEqual(steps, ['start', 'stop', 'stopped', 'start']);
  end.abort(new Error('over'));
  await running;
});

test('serves a watched object without delay while the API server is unavailable', async () => {
  const { api, objects, put, read } = createHarness();
  put('x');
  objects.register(pod());
  await read();
  api.failure = serverAway();
  assert.equal(await read(), 'x');
});

test('stops every watch at shutdown and starts no new one', async () => {
  const { clock, api, objects, put, read, stop } = createHarness();
  put('x');
  objects.register(pod());
  await read();
  assert.equal(await stop(), 'ended');
  assert.deepEqual([api.watches, clock.pendingTimers], [0, 0]);
  objects.register(pod('two', 'other'));
  const last = read();
  await clock.advance(1_000);
  assert.equal(await last, 'x');
  assert.equal(api.watches, 0);
});

test('strategy Get sends a request for every read', async () => {
  const { api, objects, put, read } = createHarness('Get');
  assert.equal(await read(), undefined);
  put('x');
  objects.register(pod());
  assert.equal(await read(), 'x');
  put('y');
  assert.equal(await read(), 'y');
  assert.equal(api.asked.filter((line) => line === 'get configmaps default/n').length, 3);
  api.failure = serverAway();
  await assert.rejects(read(), { code: 'API_FAILED' });
});

test('strategy Cache sends a request at a read and caches the object for a minute', async () => {
  const { clock, objects, put, read } = createHarness('Cache');
  put('x');
  await assert.rejects(read(), { code: 'OBJECT_NOT_REGISTERED' });
  objects.register(pod());
  assert.equal(await read(), 'x');
  put('y');
  await clock.advance(59_000);
  assert.equal(await read(), 'x');
  await clock.advance(1_000);
  assert.equal(await read(), 'y');
});
