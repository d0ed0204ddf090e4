import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mapFileStore, memoryRuntimeFiles } from '../../test/fakes/memory-runtime-files.ts';
import { aPod } from '../../test/fakes/pods.ts';
import { ScriptedApi, serverAway } from '../../test/fakes/scripted-api.ts';
import { settle, VirtualClock } from '../../test/fakes/virtual-clock.ts';
import type { Secret } from '../kinds/index.ts';
import { collectLogs, seededRandom } from '../lib/index.ts';
import { podUid } from '../pods/index.ts';
import { CheckpointedObjects } from './checkpointed-objects.ts';
import { CopiesOnDisk } from './object-copies.ts';
import { makePodObjects } from './pod-objects.ts';

const { signal } = new AbortController();
const pod = (uid = 'one') =>
  aPod({ metadata: { uid: podUid(uid) }, spec: { imagePullSecrets: [{ name: 'n' }] } });

/** A node on which kubelets start and stop, with its API server and its disk. */
function machine() {
  const clock = new VirtualClock();
  const api = new ScriptedApi();
  const store = mapFileStore();
  const { logger } = collectLogs(clock);
  const start = () => {
    const random = seededRandom(1);
    const deps = { api, clock, random, logger, syncFrequencyMs: 60_000, nodeAnnotations: () => undefined };
    const copies = new CopiesOnDisk({ files: memoryRuntimeFiles(store), directory: '/root/objects', logger });
    const objects = new CheckpointedObjects({ objects: makePodObjects('Watch', deps), copies, logger });
    const read = async () => {
      const found = objects.secret('default', 'n', signal).catch((error: Error) => error);
      await clock.advance(1_000);
      const secret = await found;
      if (secret instanceof Error) throw secret;
      return secret?.type;
    };
    return { objects, read };
  };
  const put = (type: string) =>
    api.put<Secret>('secrets', { metadata: { namespace: 'default', name: 'n' }, type });
  return { api, store, start, put };
}

test('serves the copies of the previous run when the kubelet starts without its API server', async () => {
  const { api, store, start, put } = machine();
  put('first');
  const before = start();
  before.objects.register(pod());
  assert.equal(await before.read(), 'first');
  assert.equal(store.paths().length, 1);
  api.failure = serverAway();
  const after = start();
  after.objects.register(pod());
  assert.equal(await after.read(), 'first');
});

test('stops serving a copy once the API server has reported the object', async () => {
  const { api, store, start, put } = machine();
  put('first');
  const { objects, read } = start();
  objects.register(pod());
  await read();
  api.remove('secrets', 'default/n');
  await settle();
  assert.equal(await read(), undefined);
  await settle();
  assert.deepEqual(store.paths(), []);
});

test('updates the copy when its object changes, and removes the copy with the last pod that refers to the object', async () => {
  const { api, store, start, put } = machine();
  put('first');
  const { objects, read } = start();
  objects.register(pod('one'));
  objects.register(pod('two'));
  await read();
  put('second');
  await settle();
  await read();
  const [path = ''] = store.paths();
  assert.match(store.read(path) ?? '', /second/);
  objects.unregister(podUid('one'));
  await settle();
  assert.equal(store.paths().length, 1);
  objects.unregister(podUid('two'));
  await settle();
  assert.deepEqual(store.paths(), []);
  api.failure = serverAway();
  await assert.rejects(read(), { code: 'OBJECT_NOT_REGISTERED' });
});

test('ignores a copy that is damaged or has the content of another object', async () => {
  const { api, store, start, put } = machine();
  put('first');
  const before = start();
  before.objects.register(pod());
  await before.read();
  const [path = ''] = store.paths();
  api.failure = serverAway();
  for (const text of ['{', 'null', '{"key":"secret/default/other","object":{"type":"wrong"}}']) {
    store.write(path, text);
    const after = start();
    after.objects.register(pod());
    await assert.rejects(after.read(), { code: 'OBJECT_UNSYNCED' }, text);
  }
});

test('removes the copies for pods that were deleted during downtime once all remaining pods are registered', async () => {
  const { store, start, put } = machine();
  put('first');
  const before = start();
  before.objects.register(pod());
  await before.read();
  const after = start();
  after.objects.register(pod());
  await after.objects.retainReferred();
  assert.equal(store.paths().length, 1);
  await start().objects.retainReferred();
  assert.deepEqual(store.paths(), []);
});

test('continues without copies while the disk fails', async () => {
  const { api, start, put, store } = machine();
  store.write = () => {
    throw new Error('no space');
  };
  put('first');
  const { objects, read } = start();
  objects.register(pod());
  assert.equal(await read(), 'first');
  api.failure = serverAway();
  assert.equal(await read(), 'first');
});
