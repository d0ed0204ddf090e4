import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GrpcError } from '../../src/protocols/grpc/index.ts';
import { busybox, SimulatedNode } from '../fakes/simulated-node.ts';
import { registryOf, registryOfAnything } from './registry.ts';

const says = (code: string, message: RegExp) => (error: unknown) =>
  error instanceof GrpcError && error.grpcCode === code && message.test(error.message);

const find = async (node: SimulatedNode, image: string) =>
  (await node.done(node.images.imageStatus({ image: { image } }, node.options))).image;

const pull = async (node: SimulatedNode, image: string, auth = {}) =>
  (await node.done(node.images.pullImage({ image: { image }, auth }, node.options))).imageRef;

test('an image can be found by name, by ID, and by a prefix of its ID', async () => {
  using node = new SimulatedNode();
  const image = await find(node, busybox);
  assert.deepEqual(image?.repoTags, [busybox]);
  const id = image?.id ?? '';
  assert.match(id, /^sha256:[0-9a-f]{64}$/);
  for (const text of [id, id.slice(7), id.slice(7, 20)]) assert.equal((await find(node, text))?.id, id);
  for (const text of ['localhost/none:1', 'UPPER']) assert.equal(await find(node, text), undefined);
});

test('a pulled image can also be found by its digest', async () => {
  using node = new SimulatedNode({ registry: registryOf([{ reference: 'app', user: '1000:5' }]) });
  const id = await pull(node, 'app');
  const image = await find(node, 'docker.io/library/app:latest');
  assert.equal(image?.id, id);
  assert.equal(image?.uid?.value, 1000n);
  const digest = image?.repoDigests[0] ?? '';
  assert.match(digest, /^docker\.io\/library\/app@sha256:/);
  assert.equal((await find(node, digest))?.id, id);
  await node.done(node.images.removeImage({ image: { image: 'app' } }, node.options));
  assert.equal(await find(node, 'app'), undefined);
  assert.equal(await pull(node, digest), id);
  const podSandboxId = await node.sandbox();
  const containerId = await node.create(podSandboxId, { image: { image: digest } });
  assert.equal((await node.status(containerId)).imageRef, digest);
});

test('pulling takes time', async () => {
  using node = new SimulatedNode({ registry: registryOf([{ reference: 'app', pullMs: 60_000 }]) });
  const beforeMs = node.clock.monotonicMs();
  await pull(node, 'app');
  assert.ok(node.clock.monotonicMs() - beforeMs >= 60_000);
});

test('an aborted pull stores no image', async () => {
  using node = new SimulatedNode({ registry: registryOf([{ reference: 'app', pullMs: 60_000 }]) });
  const controller = new AbortController();
  const call = node.images.pullImage({ image: { image: 'app' } }, { signal: controller.signal });
  const ended = assert.rejects(call, says('CANCELLED', /cancelled/));
  await node.clock.advance(30_000);
  controller.abort(new Error('no'));
  await ended;
  await node.clock.advance(60_000);
  assert.equal(await find(node, 'app'), undefined);
});

test('a failed pull reports the reason', async () => {
  using node = new SimulatedNode({
    registry: registryOf([
      { reference: 'example.com/secret', credentials: { username: 'u', password: 'p' } },
      { reference: 'example.com/flaky', failure: { code: 'UNKNOWN', message: 'EOF', times: 2 } },
      { reference: 'example.com/broken', failure: { code: 'UNKNOWN', message: 'bad layer' } },
    ]),
  });
  await assert.rejects(
    pull(node, 'example.com/none'),
    says('NOT_FOUND', /example.com\/none:latest: not found$/),
  );
  await assert.rejects(
    pull(node, '127.0.0.1:1/x:2'),
    says('UNKNOWN', /127\.0\.0\.1:1\/v2\/x\/manifests\/2.*refused/),
  );
  await assert.rejects(pull(node, 'UPPER'), says('UNKNOWN', /repository name must be lowercase/));
  await assert.rejects(pull(node, 'example.com/secret'), says('UNKNOWN', /authorization failed/));
  await pull(node, 'example.com/secret', { username: 'u', password: 'p' });
  await pull(node, 'example.com/secret', { auth: Buffer.from('u:p').toString('base64') });
  for (let i = 0; i < 2; i++) await assert.rejects(pull(node, 'example.com/flaky'), says('UNKNOWN', /EOF/));
  await pull(node, 'example.com/flaky');
  for (let i = 0; i < 3; i++) await assert.rejects(pull(node, 'example.com/broken'), /bad layer/);
});

test('a registry that provides every image can be simulated', async () => {
  using node = new SimulatedNode({ registry: registryOfAnything({ command: ['sleep', '10'] }) });
  await pull(node, 'any/thing:3');
  const id = await node.create(await node.sandbox(), { image: { image: 'any/thing:3' }, command: [] });
  await node.start(id);
  assert.equal((await node.exited(id)).exitCode, 0);
});

test('removing an image may be repeated, and containers survive the removal of their image', async () => {
  using node = new SimulatedNode();
  const { containerId } = await node.pod();
  for (let i = 0; i < 2; i++) {
    await node.done(node.images.removeImage({ image: { image: busybox } }, node.options));
  }
  const status = await node.status(containerId);
  assert.equal(status.state, 'CONTAINER_RUNNING');
  assert.equal(status.image?.image, busybox);
  assert.match(status.imageRef, /^sha256:/);
  const { images } = await node.done(node.images.listImages({}, node.options));
  assert.deepEqual(images, []);
});
