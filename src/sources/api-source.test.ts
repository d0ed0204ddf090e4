import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nodeUser } from '../../test/fakes/api-users.ts';
import { aPod } from '../../test/fakes/pods.ts';
import { VirtualClock } from '../../test/fakes/virtual-clock.ts';
import { SimulatedApi } from '../../test/simulator/index.ts';
import { apiResources } from '../api/index.ts';
import { collectLogs, seededRandom } from '../lib/index.ts';
import { type Pod, podUid } from '../pods/index.ts';
import { ApiSource } from './api-source.ts';

const nodeName = 'node-1';
const { pods } = apiResources;

function on(node: string, name: string, uid = `uid-${name}`): Pod {
  return aPod({ metadata: { name, uid: podUid(uid) }, spec: { nodeName: node } });
}

async function start(prepare: (api: SimulatedApi) => void = () => {}) {
  const clock = new VirtualClock();
  const api = new SimulatedApi({ clock, random: seededRandom(1) });
  prepare(api);
  const logs = collectLogs(clock);
  const sets: (readonly string[])[] = [];
  const changes: { readonly gone: readonly string[]; readonly there: readonly string[] }[] = [];
  let known = new Map<string, string>();
  const source = new ApiSource({
    api: api.client(nodeUser(nodeName)),
    clock,
    random: seededRandom(1),
    logger: logs.logger,
    nodeName,
    setPods: (list) => {
      known = new Map(list.map(({ metadata: { uid, name } }) => [uid, name]));
      sets.push([...known.values()].sort());
    },
    changePods: ({ removed, present }) => {
      for (const uid of removed) known.delete(uid);
      for (const { metadata } of present) known.set(metadata.uid, metadata.name);
      changes.push({ gone: removed, there: present.map(({ metadata }) => metadata.uid) });
      sets.push([...known.values()].sort());
    },
  });
  const stop = new AbortController();
  const running = source.run(stop.signal).catch(() => {});
  await clock.advance(2_000);
  return {
    clock,
    api,
    source,
    sets,
    changes,
    logs,
    [Symbol.asyncDispose]: async () => {
      stop.abort(new Error('over'));
      await clock.advance(1_000);
      await running;
      api.close();
      assert.equal(clock.pendingTimers, 0);
    },
  };
}

test('delivers the pods of this node as one list, and no pods of other nodes', async () => {
  await using harness = await start((api) => {
    for (const name of ['a', 'b']) api.put(pods, on(nodeName, name));
    api.put(pods, on('node-2', 'c'));
  });
  assert.deepEqual(harness.sets, [['a', 'b']]);
  assert.equal(harness.source.get('a', 'default')?.metadata.uid, 'uid-a');
  harness.api.put(pods, on(nodeName, 'd'));
  await harness.clock.advance(2_000);
  assert.deepEqual(harness.sets.at(-1), ['a', 'b', 'd']);
});

test('after the first list delivers only changes; a pod recreated with the same name is delivered as a new pod', async () => {
  await using harness = await start((api) => {
    for (const name of ['a', 'b']) api.put(pods, on(nodeName, name));
  });
  const ref = { resource: pods, namespace: 'default', name: 'a' };
  harness.api.change(ref, (pod) => ({ ...pod, metadata: { ...pod.metadata, labels: { x: 'y' } } }));
  await harness.clock.advance(2_000);
  assert.deepEqual(harness.changes, [{ gone: [], there: ['uid-a'] }]);
  harness.api.delete(ref, { gracePeriodSeconds: 0 });
  harness.api.put(pods, on(nodeName, 'a', 'uid-next'));
  await harness.clock.advance(2_000);
  assert.deepEqual(
    harness.changes.flatMap(({ gone }) => gone),
    ['uid-a'],
  );
  assert.deepEqual(harness.changes.at(-1)?.there, ['uid-next']);
  assert.deepEqual(harness.sets.at(-1), ['a', 'b']);
});

test('delivers an empty list for a node without pods', async () => {
  await using harness = await start();
  assert.deepEqual(harness.sets, [[]]);
});

test('keeps the pods while the API server is unavailable and delivers the changes afterwards', async () => {
  await using harness = await start((api) => void api.put(pods, on(nodeName, 'a')));
  harness.api.goAway();
  await harness.clock.advance(600_000);
  assert.deepEqual(harness.sets, [['a']]);
  assert.ok(harness.source.problem);
  harness.api.put(pods, on(nodeName, 'b'));
  harness.api.comeBack();
  await harness.clock.advance(60_000);
  assert.deepEqual(harness.sets.at(-1), ['a', 'b']);
  assert.equal(harness.source.problem, undefined);
});

test('omits and logs a pod whose UID would lead to a path outside the pods directory', async () => {
  await using harness = await start((api) => {
    api.put(pods, on(nodeName, 'good'));
    api.put(pods, on(nodeName, 'bad', '../../etc'));
  });
  assert.deepEqual(harness.sets, [['good']]);
  assert.match(JSON.stringify(harness.logs.records.toArray()), /bad.*cannot be the name of a directory/);
});

test("omits and logs a pod with a name that would lead to a path outside the node's directories", async () => {
  const container = { name: 'main', image: 'busybox' };
  const stray = ['..', '../../etc', 'a/b', '.', 'a\0b', ''];
  const hostile = stray.flatMap((name) => [
    { spec: { containers: [{ ...container, name }] } },
    { spec: { containers: [container], initContainers: [{ ...container, name }] } },
    { spec: { containers: [container], ephemeralContainers: [{ ...container, name }] } },
    { spec: { containers: [container], volumes: [{ name, emptyDir: {} }] } },
  ]);
  await using harness = await start((api) => {
    api.put(pods, on(nodeName, 'good'));
    api.put(pods, { ...on(nodeName, 'bad'), metadata: { ...on(nodeName, '../bad').metadata } });
    hostile.forEach(({ spec }, index) => {
      api.put(
        pods,
        aPod({ metadata: { name: `bad-${index}`, uid: podUid(`u${index}`) }, spec: { nodeName, ...spec } }),
      );
    });
  });
  assert.deepEqual(harness.sets, [['good']]);
});
