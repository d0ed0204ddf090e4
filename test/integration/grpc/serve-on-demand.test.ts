import assert from 'node:assert/strict';
import { existsSync, statSync } from 'node:fs';
import { test } from 'node:test';
import { RuntimeService, type RuntimeServiceMethods } from '../../../src/cri/index.ts';
import { realClock, seededRandom } from '../../../src/lib/index.ts';
import {
  GrpcChannel,
  type ServiceAdder,
  type ServiceImplementation,
  serveOnDemand,
} from '../../../src/protocols/grpc/index.ts';
import { answering, createHarness, failsWith, forever } from './rig.ts';

const fill = (server: ServiceAdder) =>
  server.add(RuntimeService, answering as ServiceImplementation<RuntimeServiceMethods>);

test('loads the gRPC service once, when the first client calls', async () => {
  await using setup = createHarness();
  let loads = 0;
  await using _server = await serveOnDemand(setup.path, async (server) => {
    loads++;
    fill(server);
  });
  assert.equal(statSync(setup.path).mode & 0o777, 0o600);
  assert.equal(loads, 0);
  using other = new GrpcChannel({
    target: `unix://${setup.path}`,
    clock: realClock(),
    random: seededRandom(1),
  });
  const responses = await Promise.all(
    [setup.client, other.client(RuntimeService)].map((client) => client.version({}, forever)),
  );
  assert.deepEqual(
    responses.map(({ runtimeName }) => runtimeName),
    ['ours', 'ours'],
  );
  assert.equal(loads, 1);
});

test('retries a failed load of the gRPC service with the next call', async () => {
  await using setup = createHarness({ baseBackoffMs: 1, maxBackoffMs: 1 });
  let loads = 0;
  const bugs: unknown[] = [];
  await using _server = await serveOnDemand(
    setup.path,
    async (server) => {
      if (loads++ === 0) throw new Error('the service cannot be loaded yet');
      fill(server);
    },
    { onBug: (_path, error) => bugs.push(error) },
  );
  await assert.rejects(setup.client.version({}, forever), failsWith('UNAVAILABLE'));
  assert.equal(String(bugs[0]), 'Error: the service cannot be loaded yet');
  for (let tries = 0; ; tries++) {
    const answer = await setup.client.version({}, forever).catch((error) => {
      if (tries > 1_000) throw error;
    });
    if (answer !== undefined) break;
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert.equal(loads, 2);
});

test('disconnects all clients when it stops, whether or not they have called', async () => {
  await using setup = createHarness();
  const server = await serveOnDemand(setup.path, async (adder) => fill(adder));
  await setup.client.version({}, forever);
  await server[Symbol.asyncDispose]();
  assert.ok(!existsSync(setup.path));
  await assert.rejects(setup.client.version({}, forever), failsWith('UNAVAILABLE'));
});
