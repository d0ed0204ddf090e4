import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  added,
  allTold,
  listOf,
  refusal,
  ScriptedServer,
  type Thing,
  thing,
} from '../../../test/fakes/reflector-rig.ts';
import { settle, VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { collectLogs, seededRandom } from '../../lib/index.ts';
import { apiResources } from '../client/resource.ts';
import { ObjectReflector, type ObjectReflectorOptions } from './reflector-single.ts';

function singleRig(more: Partial<ObjectReflectorOptions<Thing>> = {}) {
  const clock = new VirtualClock();
  const server = new ScriptedServer();
  const ref = { resource: apiResources.secrets, namespace: 'default', name: 'key' };
  const { logger } = collectLogs(clock);
  const isFinal = (object: Thing) => object.immutable === true;
  const options = { client: server, clock, random: seededRandom(1), logger, ref, isFinal, ...more };
  return { clock, server, reflector: new ObjectReflector<Thing>(options) };
}

test('watches a single object by name, each time for 30 to 60 minutes', async () => {
  const { reflector, server } = singleRig();
  reflector.start();
  await settle();
  const { fieldSelector, namespace, timeoutSeconds } = server.last.query;
  assert.deepEqual([fieldSelector, namespace], ['metadata.name=key', 'default']);
  assert.ok(timeoutSeconds >= 1_800 && timeoutSeconds <= 3_600);
  server.last.send(allTold('1'));
  await settle();
  assert.equal(reflector.hasSynced, true);
  const current = () => reflector.current;
  assert.equal(current(), undefined, 'it is known not to exist');
  server.last.send(added('other', '2'), added('key', '3'));
  await settle();
  assert.equal(current()?.metadata.resourceVersion, '3');
  await reflector.stop();
});

test('caches an immutable object without watching it further', async () => {
  const { reflector, server, clock } = singleRig();
  reflector.start();
  await settle();
  server.last.send(added('key', '3'), allTold('4'));
  await settle();
  assert.equal(reflector.isRunning, true);
  server.last.send({ type: 'MODIFIED', object: thing('key', '5', { immutable: true }) });
  await clock.advance(0);
  assert.equal(reflector.isRunning, false);
  assert.equal(server.last.closed, true);
  assert.equal(clock.pendingTimers, 0);
  reflector.start();
  await reflector.stop();
  assert.equal(reflector.hasSynced, true);
  assert.equal(reflector.current?.immutable, true);
  assert.equal(server.watches.length, 1);
});

test('does not open a watch for an immutable object received by a list', async () => {
  const { reflector, server } = singleRig();
  server.refuse = () => refusal(422);
  server.answer = () => listOf('4', thing('key', '3', { immutable: true }));
  reflector.start();
  await settle();
  assert.equal(server.watches.length, 1);
  assert.equal(reflector.hasSynced, true);
  assert.equal(reflector.isRunning, false);
});
