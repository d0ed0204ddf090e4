import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { aPod } from '../../../test/fakes/pods.ts';
import { PodsApi, refusal } from '../../../test/fakes/pods-api.ts';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import type { Node } from '../../kinds/index.ts';
import { collectLogs, seededRandom } from '../../lib/index.ts';
import { annotations, fullNameOf, type Pod, type PodFullName, PodManager, podUid } from '../../pods/index.ts';
import { MirrorPods, mirrorNames } from './mirror-pods.ts';

const registered: Node = { metadata: { name: 'n1', uid: 'node-uid' } };

function aStaticPod(hash: string, source: 'file' | 'http' = 'file'): Pod {
  return aPod({
    metadata: {
      uid: podUid(hash),
      labels: { app: 'web' },
      annotations: { [annotations.hash]: hash, [annotations.source]: source, note: 'x' },
    },
    spec: { nodeName: 'n1' },
    status: { phase: 'Running' },
  });
}

const name = fullNameOf(aStaticPod('h')) as PodFullName;

/**
 * Runs MirrorPods with a fake API whose watch the test controls: the returned function `see`
 * delivers the pending watch events.
 */
async function atWork(t: { after(run: () => void): void }, first: Node | undefined = registered) {
  const clock = new VirtualClock();
  const api = new PodsApi(clock);
  const pods = new PodManager();
  const environment: { node: Node | undefined; isEnding: boolean } = { node: first, isEnding: false };
  const { logger, records } = collectLogs(clock);
  const stopping = new AbortController();
  t.after(() => stopping.abort(new Error('stopped')));
  const mirrors = new MirrorPods({
    clock,
    random: seededRandom(1),
    logger,
    api,
    node: () => environment.node,
    pairOf: (full) => pods.getStaticPair(full),
    isEnding: () => environment.isEnding,
  });
  mirrors.run(stopping.signal).catch(() => {});
  const look = async (ms = 0) => {
    mirrors.reconcile(name);
    await clock.advance(ms);
  };
  const see = async () => {
    const before = pods.getPodsAndMirrorPods().mirrorPods;
    for (const one of before) if (api.pods.get('web')?.metadata.uid !== one.metadata.uid) pods.removePod(one);
    const now = api.pods.get('web');
    if (now !== undefined) pods.addPod(now);
    await look();
  };
  return { clock, api, pods, world: environment, records, mirrors, look, see };
}

describe('mirror pods of static pods', () => {
  it('creates a mirror pod that is owned only by the node and annotated with the hash of its static pod', async (t) => {
    const { api, pods, look } = await atWork(t);
    pods.addPod(aStaticPod('h1'));
    await look();
    assert.deepEqual(api.verbs(), ['create']);
    assert.deepEqual(api.calls[0]?.body, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: {
        name: 'web',
        namespace: 'default',
        labels: { app: 'web' },
        annotations: {
          [annotations.hash]: 'h1',
          [annotations.source]: 'file',
          note: 'x',
          [annotations.mirror]: 'h1',
        },
        ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'n1', uid: 'node-uid', controller: true }],
      },
      spec: aStaticPod('h1').spec,
    });
  });

  it('creates a mirror pod once, however often it is requested before and after the watch delivers it', async (t) => {
    const { api, pods, look, see } = await atWork(t);
    pods.addPod(aStaticPod('h1'));
    for (let index = 0; index < 5; index++) await look(100);
    await see();
    await look(60_000);
    assert.deepEqual(api.verbs(), ['create']);
  });

  it('creates no mirror pod before the node is registered, and creates it within 100 ms after', async (t) => {
    const { api, pods, look, world, clock } = await atWork(t, { metadata: { name: 'n1' } });
    world.node = undefined;
    pods.addPod(aStaticPod('h1'));
    await look(5_000);
    assert.deepEqual(api.verbs(), []);
    world.node = registered;
    await clock.advance(100);
    assert.deepEqual(api.verbs(), ['create']);
  });

  it('creates no mirror pod on a node that is being deleted', async (t) => {
    const { api, pods, look } = await atWork(t, {
      metadata: { ...registered.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' },
    });
    pods.addPod(aStaticPod('h1'));
    await look(60_000);
    assert.deepEqual(api.verbs(), []);
  });

  it('recreates a deleted mirror pod without syncing its static pod', async (t) => {
    const { api, pods, look, see } = await atWork(t);
    pods.addPod(aStaticPod('h1'));
    await look();
    await see();
    api.pods.clear();
    await see();
    assert.deepEqual(api.verbs(), ['create', 'create']);
  });

  it('replaces a mirror pod that is deleted gracefully or has another hash', async (t) => {
    const { api, pods, look, see } = await atWork(t);
    pods.addPod(aStaticPod('h1'));
    await look();
    const first = api.pods.get('web');
    assert.ok(first !== undefined);
    api.put({ ...first, metadata: { ...first.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } });
    await see();
    assert.deepEqual(api.verbs(), ['create', 'delete', 'create']);
    assert.deepEqual(api.calls[1]?.body, { gracePeriodSeconds: 0, uid: first.metadata.uid });
    await see();
    pods.removePod(aStaticPod('h1'));
    pods.addPod(aStaticPod('h2'));
    await look();
    assert.deepEqual(api.verbs().slice(3), ['delete', 'create']);
    assert.equal(api.pods.get('web')?.metadata.annotations?.[annotations.mirror], 'h2');
  });

  it('replaces a mirror pod once when it shows the final status of an earlier instance of its static pod', async (t) => {
    const { api, pods, look, see, mirrors } = await atWork(t);
    pods.addPod(aStaticPod('h1'));
    await look();
    await see();
    const first = api.pods.get('web');
    assert.ok(first !== undefined);
    mirrors.replace(first);
    await look();
    assert.deepEqual(api.verbs(), ['create', 'delete', 'create']);
    await see();
    mirrors.replace(first);
    await look(60_000);
    assert.deepEqual(api.verbs(), ['create', 'delete', 'create']);
  });

  it('keeps the mirror pod while its static pod terminates and removes it afterwards', async (t) => {
    const { api, pods, look, see, world, clock } = await atWork(t);
    pods.addPod(aStaticPod('h1'));
    await look();
    await see();
    pods.removePod(aStaticPod('h1'));
    world.isEnding = true;
    await look(30_000);
    assert.equal(api.pods.size, 1);
    world.isEnding = false;
    await clock.advance(1_000);
    assert.equal(api.pods.size, 0);
  });

  it('creates no mirror pod for a pod from the API server', async (t) => {
    const { api, pods, look } = await atWork(t);
    pods.addPod(aPod());
    await look(20_000);
    assert.deepEqual(api.verbs(), []);
    assert.equal(mirrorNames(pods.getPodsAndMirrorPods()).size, 0);
  });

  it('removes mirror pods whose static pod does not exist', async (t) => {
    const { api, pods, see } = await atWork(t);
    api.put(aPod({ metadata: { annotations: { [annotations.mirror]: 'old' } } }));
    await see();
    assert.deepEqual(api.verbs(), ['delete']);
    await see();
    assert.deepEqual(mirrorNames(pods.getPodsAndMirrorPods()), new Set());
  });

  it('adopts an existing mirror pod with the same hash and replaces other ones', async (t) => {
    const { api, pods, look, clock } = await atWork(t);
    pods.addPod(aStaticPod('h1'));
    api.put(aPod({ metadata: { uid: podUid('m'), annotations: { [annotations.mirror]: 'h1' } } }));
    await look();
    assert.deepEqual(api.verbs(), ['create', 'get']);
    pods.removePod(aStaticPod('h1'));
    pods.addPod(aStaticPod('h2'));
    await look();
    await clock.advance(2_000);
    assert.deepEqual(api.verbs().slice(2), ['delete', 'create']);
  });

  it('does not change an ordinary pod that has the name of a mirror pod', async (t) => {
    const { api, pods, look, clock, records } = await atWork(t);
    pods.addPod(aStaticPod('h1'));
    api.put(aPod({ metadata: { uid: podUid('theirs') } }));
    await look(60_000);
    assert.ok(!api.verbs().includes('delete'));
    assert.ok(records.toArray().some(({ severity }) => severity === 'warning'));
    api.pods.clear();
    await clock.advance(40_000);
    assert.equal(api.pods.get('web')?.metadata.annotations?.[annotations.mirror], 'h1');
  });

  it('backs off when the API server fails and retries immediately when it recovers', async (t) => {
    const { api, pods, look, clock, mirrors } = await atWork(t);
    api.failure = ({ verb, name: of }) => refusal(verb, of, 500);
    pods.addPod(aStaticPod('h1'));
    await look();
    for (let index = 0; index < 300; index++) await look(1_000);
    assert.ok(api.calls.length < 20, `${api.calls.length} calls in five minutes`);
    api.failure = () => undefined;
    mirrors.reconnected();
    await clock.advance(0);
    assert.equal(api.pods.size, 1);
  });

  it('creates a mirror pod again when the watch does not deliver it', async (t) => {
    const { api, pods, look, clock } = await atWork(t);
    pods.addPod(aStaticPod('h1'));
    await look();
    api.pods.clear();
    await clock.advance(10_000);
    assert.deepEqual(api.verbs(), ['create', 'create']);
  });
});
