import assert from 'node:assert/strict';
import { test } from 'node:test';
import { defaultRules, podManifest } from '../../test/fakes/manifests.ts';
import { VirtualClock } from '../../test/fakes/virtual-clock.ts';
import { collectLogs } from '../lib/index.ts';
import type { Pod } from '../pods/index.ts';
import type { ManifestResponse } from './http-source.ts';
import { HttpSource } from './http-source.ts';
import { describeProblem } from './problems.ts';

type Reply = string | number | Error | 'hang';

async function run(first: Reply) {
  await import('yaml');
  const clock = new VirtualClock();
  const logs = collectLogs(clock);
  const sets: (readonly Pod[])[] = [];
  const told: string[] = [];
  const asked: { readonly atMs: number; readonly headers: unknown }[] = [];
  let reply = first;
  const source = new HttpSource({
    url: 'http://user:secret@example.com/pods?token=abc',
    headers: { 'X-Node': ['a', 'b'] },
    nodeName: 'node-a',
    rules: defaultRules,
    clock,
    logger: logs.logger,
    resyncMs: 20_000,
    setPods: (pods) => void sets.push(pods),
    onProblem: (problem) => void told.push(describeProblem(problem)),
    get: async (_url, headers): Promise<ManifestResponse> => {
      asked.push({ atMs: clock.monotonicMs(), headers });
      if (reply === 'hang') return await new Promise(() => {});
      if (reply instanceof Error) throw reply;
      return typeof reply === 'number'
        ? { status: reply, body: Buffer.alloc(0) }
        : { status: 200, body: Buffer.from(reply) };
    },
  });
  const stop = new AbortController();
  const running = source.run(stop.signal);
  await clock.advance(0);
  return {
    clock,
    logs,
    sets,
    told,
    asked,
    source,
    answer: (next: Reply) => {
      reply = next;
    },
    names: () => (sets.at(-1) ?? []).map(({ metadata }) => metadata.name),
    [Symbol.asyncDispose]: async () => {
      stop.abort();
      await running;
      assert.equal(clock.pendingTimers, 0);
    },
  };
}

test('delivers the pod or pod list from a manifest URL, without the toleration of file pods', async () => {
  await using rig = await run(podManifest('a'));
  assert.deepEqual(rig.names(), ['a-node-a']);
  assert.equal(rig.sets[0]?.[0]?.spec.tolerations, undefined);
  assert.deepEqual(rig.asked[0]?.headers, { 'X-Node': ['a', 'b'] });
  const item = '{"metadata":{"name":"b"},"spec":{"containers":[{"name":"x","image":"y"}]}}';
  rig.answer(`{"apiVersion":"v1","kind":"PodList","items":[${item}]}`);
  await rig.clock.advance(20_000);
  assert.deepEqual(rig.names(), ['b-node-a']);
});

test('delivers nothing when the body is unchanged, and keeps reporting its problems', async () => {
  await using rig = await run([podManifest('a'), podManifest('b', '""')].join('---\n'));
  assert.deepEqual(rig.names(), ['a-node-a'], 'each document is validated separately');
  await rig.clock.advance(100_000);
  assert.equal(rig.sets.length, 1);
  assert.equal(rig.told.length, 1);
  assert.equal(rig.source.problems().length, 1);
});

test('keeps the pods when the URL sends no response or a status other than 200', async () => {
  await using rig = await run(podManifest('a'));
  for (const reply of [500, 404, new Error('connect ECONNREFUSED')]) {
    rig.answer(reply);
    await rig.clock.advance(20_000);
  }
  assert.equal(rig.sets.length, 1);
  assert.match(rig.told[0] ?? '', /cannot be read: .*status must be 200: current value is 500/);
});

test('keeps the pods of the last valid body after an invalid one', async () => {
  await using rig = await run(podManifest('a'));
  rig.answer('kind: Pod\nspec: 3\n');
  await rig.clock.advance(20_000);
  assert.deepEqual(rig.names(), ['a-node-a']);
});

test('an invalid body in the first response counts as an empty list', async () => {
  await using rig = await run('nonsense');
  assert.deepEqual(rig.sets, [[]]);
});

test('delivers an empty list for an empty body and reports a problem', async () => {
  await using rig = await run(podManifest('a'));
  rig.answer('');
  await rig.clock.advance(20_000);
  assert.deepEqual(rig.names(), []);
  assert.match(rig.told[0] ?? '', /must define a pod: it is empty \(serve a PodList without items/);
  rig.answer('{"apiVersion":"v1","kind":"PodList","items":[]}');
  await rig.clock.advance(20_000);
  assert.deepEqual(rig.source.problems(), []);
});

test('aborts a request after ten seconds and sends the next one an interval later', async () => {
  await using rig = await run('hang');
  await rig.clock.advance(10_000);
  assert.match(rig.told[0] ?? '', /within 10000 ms/);
  rig.answer(podManifest('a'));
  await rig.clock.advance(19_999);
  assert.equal(rig.asked.length, 1);
  await rig.clock.advance(1);
  assert.deepEqual(rig.names(), ['a-node-a']);
  assert.deepEqual(rig.source.problems(), []);
});

test('logs the first three consecutive failures and the recovery', async () => {
  await using rig = await run(500);
  await rig.clock.advance(200_000);
  const errors = () => [...rig.logs.records].filter(({ severity }) => severity === 'error').length;
  assert.equal(errors(), 3);
  rig.answer(podManifest('a'));
  await rig.clock.advance(20_000);
  const last = [...rig.logs.records].at(-1);
  assert.equal(last?.message, 'Manifest URL can be read again');
});

test('logs and events contain no passwords or tokens of the URL', async () => {
  await using rig = await run(500);
  rig.answer('nonsense');
  await rig.clock.advance(20_000);
  const shown = JSON.stringify([rig.told, [...rig.logs.records]]);
  assert.ok(rig.told.length >= 2);
  assert.doesNotMatch(shown, /secret|abc/);
});
