import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { VirtualClock } from '../../test/fakes/virtual-clock.ts';
import { collectLogs } from '../lib/index.ts';
import { annotations, type Pod, type PodEvent, podUid } from '../pods/index.ts';
import { PodConfig, type PodUpdate } from './pod-config.ts';

const never = new AbortController().signal;

function pod(
  uid: string,
  changes: { name?: string; spec?: object; meta?: object; status?: object } = {},
): Pod {
  return {
    metadata: { name: changes.name ?? `pod-${uid}`, namespace: 'default', uid: podUid(uid), ...changes.meta },
    spec: { containers: [], ...changes.spec },
    status: { ...changes.status },
  };
}

function createHarness(sources: readonly ('file' | 'http' | 'api')[] = ['file', 'api']) {
  const clock = new VirtualClock();
  const events: (PodEvent & { readonly uid: string })[] = [];
  const journal = {
    event: (about: Pod, event: PodEvent) => void events.push({ ...event, uid: about.metadata.uid }),
    step: () => {},
  };
  const ended = new Set<string>();
  const hasEnded = (uid: string) => ended.has(uid);
  const config = new PodConfig({
    sources,
    clock,
    journal,
    isFinished: hasEnded,
    logger: collectLogs(clock).logger,
  });
  const next = async () => {
    await config.changed(never);
    return config.takeUpdate() ?? assert.fail('Nothing is pending');
  };
  const brief = ({ op, pods, source }: PodUpdate) =>
    `${source} ${op} ${pods.map(({ metadata }) => metadata.uid).join(',')}`;
  /** Takes all pending updates. */
  const drain = async () => {
    const updates: PodUpdate[] = [];
    for (let update = config.takeUpdate(); update !== undefined; update = config.takeUpdate())
      updates.push(update);
    return updates;
  };
  return { clock, config, ended, events, next, brief, drain, told: async () => (await drain()).map(brief) };
}

test('sends an ADD with the source and the first-seen time for a new pod', async () => {
  const { config, next } = createHarness();
  const given = pod('1', { meta: { annotations: { [annotations.source]: 'forged', note: 'x' } } });
  config.set('file', [given]);
  const update = await next();
  assert.equal(update.op, 'ADD');
  assert.deepEqual(update.pods[0]?.metadata.annotations, {
    [annotations.source]: 'file',
    [annotations.seen]: '2026-01-01T00:00:00.000000000Z',
    note: 'x',
  });
});

test('sends each kind of change as its operation, removals first', async () => {
  const { config, drain, told } = createHarness();
  config.set(
    'api',
    ['a', 'b', 'c', 'd', 'e'].map((uid) => pod(uid)),
  );
  await drain();
  config.set('api', [
    pod('new'),
    pod('b', { spec: { hostPID: true } }),
    pod('c', { meta: { deletionTimestamp: '2026-01-01T00:00:00Z', deletionGracePeriodSeconds: 30 } }),
    pod('d', { status: { phase: 'Running' } }),
    pod('e'),
  ]);
  assert.deepEqual(await told(), [
    'api REMOVE a',
    'api ADD new',
    'api UPDATE b',
    'api DELETE c',
    'api RECONCILE d',
  ]);
});

test('sends nothing when a source sends the same list again', async () => {
  const { config, drain, told } = createHarness();
  config.set('file', [pod('1')]);
  await drain();
  config.set('file', [pod('1')]);
  assert.deepEqual(await told(), []);
});

test('updates the fields that the kubelet acts on, and keeps local annotations and first-seen metadata', async () => {
  const { clock, config, drain } = createHarness();
  const meta = {
    resourceVersion: '1',
    finalizers: ['a.io/x'],
    annotations: { [annotations.mirror]: 'h', old: '1' },
  };
  config.set('api', [pod('1', { meta })]);
  await drain();
  await clock.advance(5_000);
  const changed = {
    resourceVersion: '2',
    generation: 4,
    finalizers: ['a.io/y'],
    labels: { a: 'b' },
    annotations: { [annotations.mirror]: 'forged', [annotations.seen]: 'forged', fresh: '1' },
  };
  config.set('api', [pod('1', { meta: changed, status: { phase: 'Failed' } })]);
  const [update] = await drain();
  assert.equal(update?.op, 'UPDATE');
  const result = update?.pods[0];
  assert.deepEqual(result?.metadata.annotations, {
    [annotations.source]: 'api',
    [annotations.mirror]: 'h',
    [annotations.seen]: '2026-01-01T00:00:00.000000000Z',
    fresh: '1',
  });
  assert.deepEqual(result?.metadata.finalizers, ['a.io/x']);
  assert.equal(result?.metadata.resourceVersion, '1');
  assert.equal(result?.metadata.generation, 4);
  assert.deepEqual(result?.metadata.labels, { a: 'b' });
  assert.deepEqual(result?.status, { phase: 'Failed' });
});

test('an edited image of a pod with fixed metadata.uid sends an in-place UPDATE', async () => {
  const { config, drain, told } = createHarness();
  config.set('file', [pod('fixed', { spec: { containers: [{ name: 'a', image: 'x:1' }] } })]);
  await drain();
  config.set('file', [pod('fixed', { spec: { containers: [{ name: 'a', image: 'x:2' }] } })]);
  assert.deepEqual(await told(), ['file UPDATE fixed']);
});

test('sends REMOVE before ADD for a pod recreated under its name', async () => {
  const { config, drain, told } = createHarness();
  config.set('file', [pod('1', { name: 'web' })]);
  await drain();
  config.set('file', [pod('2', { name: 'web' })]);
  assert.deepEqual(await told(), ['file REMOVE 1', 'file ADD 2']);
});

test('sends an empty ADD for a first empty list, and nothing for a later one', async () => {
  const { config, told } = createHarness();
  config.set('file', []);
  assert.deepEqual(await told(), ['file ADD ']);
  config.set('file', []);
  assert.deepEqual(await told(), []);
});

test('omits the second pod of the same full name or UID in a list and records an event', async () => {
  const { config, events, told } = createHarness();
  const list = [pod('1', { name: 'web' }), pod('2', { name: 'web' }), pod('1', { name: 'other' })];
  config.set('file', list);
  assert.deepEqual(await told(), ['file ADD 1']);
  assert.deepEqual(
    events.map(({ type, reason, uid }) => [type, reason, uid]),
    [
      ['Warning', 'FailedValidation', '2'],
      ['Warning', 'FailedValidation', '1'],
    ],
  );
});

test('treats pods of the same name in two sources as two pods', async () => {
  const { config, told } = createHarness(['file', 'http']);
  config.set('file', [pod('1', { name: 'web' })]);
  config.set('http', [pod('2', { name: 'web' })]);
  assert.deepEqual(await told(), ['file ADD 1', 'http ADD 2']);
});

test('a source is ready when it has sent a list and the sync loop has handled an update of that source', async () => {
  const { config, next } = createHarness(['file', 'api']);
  config.markHandled('file');
  assert.equal(config.isReady('file'), false);
  config.set('file', []);
  assert.equal(config.isReady('file'), true);
  assert.equal(config.allReady(), false);
  config.set('api', [pod('1')]);
  assert.equal(config.isReady('api'), false);
  await next();
  config.markHandled('api');
  assert.equal(config.allReady(), true);
  assert.deepEqual(config.readiness(), [
    { source: 'file', ready: true },
    { source: 'api', ready: true },
  ]);
});

test('all sources are ready when no source is configured', () => {
  assert.equal(createHarness([]).config.allReady(), true);
});

test('sends only the current state when a source changes repeatedly before a delivery', async () => {
  const { config, drain, told } = createHarness(['api']);
  config.set('api', [pod('1')]);
  await drain();
  for (let round = 0; round < 120; round++)
    config.set('api', [pod('1', { meta: { labels: { round: `${round}` } } })]);
  const updates = await drain();
  assert.deepEqual(
    updates.map(({ op, pods }) => [op, pods[0]?.metadata.labels]),
    [['UPDATE', { round: '119' }]],
  );
  assert.deepEqual(await told(), []);
});

test('sends nothing for a change that is undone before it was delivered', async () => {
  const { clock, config, drain, told } = createHarness(['file']);
  config.set('file', [pod('1', { name: 'web' })]);
  await drain();
  config.set('file', [pod('2', { name: 'web' })]);
  await clock.advance(1);
  config.set('file', [pod('3', { name: 'web' })]);
  await clock.advance(1);
  config.set('file', [pod('2', { name: 'web' })]);
  assert.deepEqual(await told(), ['file REMOVE 1', 'file ADD 2']);
});

test('after the REMOVE of a recreated pod was delivered, sends an ADD only for the newest pod of that name', async () => {
  const { clock, config, drain, told } = createHarness(['file']);
  config.set('file', [pod('1', { name: 'web' })]);
  await drain();
  config.set('file', [pod('2', { name: 'web' })]);
  assert.equal(config.takeUpdate()?.op, 'REMOVE');
  await clock.advance(1);
  config.set('file', [pod('3', { name: 'web' })]);
  assert.deepEqual(await told(), ['file ADD 3']);
});

test('sends nothing for a pod removed and added again before a delivery, but sends REMOVE and ADD when the pod has finished', async () => {
  const { clock, config, ended, drain, told } = createHarness(['file']);
  config.set('file', [pod('1')]);
  await drain();
  config.set('file', []);
  await clock.advance(1);
  config.set('file', [pod('1')]);
  assert.deepEqual(await told(), []);
  ended.add('1');
  config.set('file', [pod('1'), pod('2')]);
  assert.deepEqual(await told(), ['file ADD 2']);
  config.set('file', [pod('2')]);
  await clock.advance(1);
  config.set('file', [pod('1'), pod('2')]);
  assert.deepEqual(await told(), ['file REMOVE 1', 'file ADD 1']);
});

test('aborting a wait for updates consumes no update', async () => {
  const { config, next, brief } = createHarness();
  const stop = new AbortController();
  const waiting = config.changed(stop.signal);
  stop.abort(new Error('enough'));
  await assert.rejects(waiting, /enough/);
  config.set('file', [pod('1')]);
  assert.equal(brief(await next()), 'file ADD 1');
});

test('freezes the pods in delivered updates', async () => {
  const { config, next } = createHarness();
  config.set('file', [pod('1', { spec: { containers: [{ name: 'a' }] } })]);
  const [given] = (await next()).pods;
  assert.throws(() => Object.assign(given?.spec.containers[0] ?? {}, { name: 'b' }), TypeError);
  assert.throws(() => Object.assign(given?.metadata.annotations ?? {}, { a: 'b' }), TypeError);
});

test('delivered pods equal the last list after any sequence of lists', async () => {
  const arbitraryPod = fc
    .record({
      uid: fc.constantFrom('1', '2', '3', '4', '5'),
      image: fc.constantFrom('a', 'b'),
      label: fc.constantFrom('x', 'y'),
      phase: fc.constantFrom('Pending', 'Running'),
      deleted: fc.boolean(),
    })
    .map(({ uid, image, label, phase, deleted }) =>
      pod(uid, {
        spec: { containers: [{ name: 'main', image }] },
        meta: { labels: { label }, ...(deleted && { deletionTimestamp: '2026-01-01T00:00:00Z' }) },
        status: { phase },
      }),
    );
  const list = fc.uniqueArray(arbitraryPod, { selector: ({ metadata }) => metadata.uid });
  await fc.assert(
    fc.asyncProperty(fc.array(list, { minLength: 1, maxLength: 8 }), async (lists) => {
      const { config, drain } = createHarness(['api']);
      const applied = new Map<string, Pod>();
      for (const pods of lists) {
        config.set('api', pods);
        for (const { op, pods: changed } of await drain())
          for (const one of changed) {
            assert.equal(applied.has(one.metadata.uid), op !== 'ADD', `${op} of ${one.metadata.uid}`);
            if (op === 'REMOVE') applied.delete(one.metadata.uid);
            else applied.set(one.metadata.uid, one);
            assert.equal(op === 'DELETE' && one.metadata.deletionTimestamp === undefined, false);
          }
      }
      const plain = ({ metadata, spec, status }: Pod) => ({
        uid: metadata.uid,
        labels: metadata.labels,
        deletion: metadata.deletionTimestamp,
        spec,
        status,
      });
      const byUid = (a: { uid: string }, b: { uid: string }) => (a.uid < b.uid ? -1 : 1);
      assert.deepEqual(
        [...applied.values()].map(plain).sort(byUid),
        (lists.at(-1) ?? []).map(plain).sort(byUid),
      );
    }),
    { numRuns: 60 },
  );
});

test('compares only the pods whose object differs from the last list', async () => {
  const { config, told } = createHarness();
  let looks = 0;
  const watched = (uid: string): Pod => {
    const one = pod(uid);
    return {
      metadata: one.metadata,
      status: one.status,
      get spec() {
        looks++;
        return one.spec;
      },
    };
  };
  const [a, b] = [watched('a'), watched('b')];
  config.set('api', [a, b]);
  assert.deepEqual(await told(), ['api ADD a,b']);
  looks = 0;
  config.set('api', [a, b]);
  config.set('api', [b, a]);
  assert.deepEqual(await told(), []);
  assert.equal(looks, 0);
  config.set('api', [a]);
  assert.deepEqual(await told(), ['api REMOVE b']);
  config.set('api', [a, b]);
  assert.deepEqual(await told(), ['api ADD b']);
  assert.ok(looks > 0);
});

test('sends the same updates for list changes as for the complete list', async () => {
  const uids = ['1', '2', '3', '4'];
  const labelled = (uid: string, label: number) => pod(uid, { meta: { labels: { label: String(label) } } });
  const lists = fc.array(fc.dictionary(fc.constantFrom(...uids), fc.nat(2)), { minLength: 1, maxLength: 6 });
  const sorted = (updates: readonly PodUpdate[]) =>
    updates.map(({ op, pods }) => [op, pods.toSorted((a, b) => (a.metadata.uid < b.metadata.uid ? -1 : 1))]);
  await fc.assert(
    fc.asyncProperty(lists, fc.array(fc.boolean(), { minLength: 6, maxLength: 6 }), async (told, drains) => {
      const [whole, parts] = [createHarness(['api']), createHarness(['api'])];
      let before: Readonly<Record<string, number>> | undefined;
      for (const [index, now] of told.entries()) {
        whole.config.set(
          'api',
          Object.entries(now).map(([uid, label]) => labelled(uid, label)),
        );
        const changed = Object.entries(now).filter(([uid, label]) => before?.[uid] !== label);
        const there = changed.map(([uid, label]) => labelled(uid, label));
        const gone = Object.keys(before ?? {}).filter((uid) => now[uid] === undefined);
        if (before === undefined) parts.config.set('api', there);
        else parts.config.change('api', { removed: gone.map((uid) => podUid(uid)), present: there });
        before = now;
        if (drains[index]) assert.deepEqual(sorted(await parts.drain()), sorted(await whole.drain()));
        await Promise.all([whole.clock.advance(1_000), parts.clock.advance(1_000)]);
      }
      assert.deepEqual(sorted(await parts.drain()), sorted(await whole.drain()));
    }),
  );
});

test('rejects changes of a source that has sent no list', () => {
  const { config } = createHarness(['api']);
  assert.throws(() => config.change('api', { removed: [], present: [pod('1')] }), { code: 'BUG' });
});

test('delivers the list restored from the previous kubelet, but the source is not ready before it sends a list itself', async () => {
  const { config, told } = createHarness(['api']);
  assert.equal(config.setExpected('api', [pod('1'), pod('2')]), 'expected');
  assert.deepEqual(await told(), ['api ADD 1,2']);
  config.markHandled('api');
  assert.equal(config.isReady('api'), false);
  config.set('api', [pod('1'), pod('3')]);
  assert.equal(config.isReady('api'), false);
  assert.deepEqual(await told(), ['api REMOVE 2', 'api ADD 3']);
  config.markHandled('api');
  assert.equal(config.isReady('api'), true);
  assert.equal(config.setExpected('api', [pod('4')]), 'already-listed');
  assert.deepEqual(await told(), []);
});

test('the source becomes ready when its first list equals the list restored from the previous kubelet', async () => {
  const { config, told } = createHarness(['api']);
  const same = pod('1');
  config.setExpected('api', [same]);
  await told();
  config.set('api', [same]);
  assert.deepEqual(await told(), ['api ADD ']);
  config.markHandled('api');
  assert.equal(config.isReady('api'), true);
});
