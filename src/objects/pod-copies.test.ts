import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mapFileStore, memoryRuntimeFiles } from '../../test/fakes/memory-runtime-files.ts';
import { aPod } from '../../test/fakes/pods.ts';
import { VirtualClock } from '../../test/fakes/virtual-clock.ts';
import { cancelledError, collectLogs } from '../lib/index.ts';
import { annotations, type Pod, podUid } from '../pods/index.ts';
import { ApiPodCopies, clusterCopies } from './pod-copies.ts';

function createHarness() {
  const clock = new VirtualClock();
  const { logger } = collectLogs(clock);
  const store = mapFileStore();
  const copies = clusterCopies({ files: memoryRuntimeFiles(store), rootDir: '/root', logger });
  const retained = new ApiPodCopies({ copies: copies.pods, clock, logger });
  const stop = new AbortController();
  const running = retained.run(stop.signal).catch(() => {});
  const end = async () => {
    stop.abort(cancelledError('test ended'));
    await running;
  };
  const names = async () => (await retained.read()).map(({ metadata }) => metadata.uid).sort();
  return { clock, copies, kept: retained, store, names, end };
}

const pod = (uid: string, metadata: Partial<Pod['metadata']> = {}) =>
  aPod({ metadata: { uid: podUid(uid), name: uid, ...metadata } });

test('stores copies of the pods that the API server assigned to the node, without mirror pods', async () => {
  const { clock, kept, names, end } = createHarness();
  kept.listed([pod('a'), pod('b'), pod('m', { annotations: { [annotations.mirror]: 'x' } })]);
  await clock.advance(2_000);
  assert.deepEqual(await names(), ['a', 'b']);
  kept.changed({ removed: [podUid('a')], present: [pod('c')] });
  await clock.advance(2_000);
  assert.deepEqual(await names(), ['b', 'c']);
  kept.listed([pod('c')]);
  await clock.advance(2_000);
  assert.deepEqual(await names(), ['c']);
  await end();
});

test('ignores copies of pods that are damaged or at a wrong path', async () => {
  const { clock, kept, store, names, end } = createHarness();
  kept.listed([pod('a'), pod('b')]);
  await clock.advance(2_000);
  const [first = ''] = store.paths();
  store.write(first, '{"key":');
  assert.equal((await names()).length, 1);
  await end();
});

test('stores copies of services, too', async () => {
  const { copies, end } = createHarness();
  assert.equal(await copies.services.read(), undefined);
  await copies.services.write([{ metadata: { name: 'dns' } }]);
  assert.deepEqual(await copies.services.read(), [{ metadata: { name: 'dns' } }]);
  await end();
});
