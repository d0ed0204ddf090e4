import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { test } from 'node:test';
import type { ApiResponse } from '../../src/local-api/api/responses.ts';
import { FrontRig } from '../fakes/api-front.ts';
import { until } from '../fakes/until.ts';
import { VirtualClock } from '../fakes/virtual-clock.ts';

const maps = '/api/v1/namespaces/a/configmaps';

/** An object list that counts how many of its large objects were serialized. */
function countedList(count: number): { readonly answer: ApiResponse; readonly made: () => number } {
  let created = 0;
  const items = Array.from({ length: count }, (_, index) => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: `c${index}` },
    data: {
      toJSON() {
        created++;
        return { text: 'x'.repeat(10_000) };
      },
    },
  }));
  const list = { kind: 'ConfigMapList', apiVersion: 'v1', metadata: { resourceVersion: '1' }, items };
  return { answer: { kind: 'list', code: 200, list }, made: () => created };
}

function ask(port: number, method = 'GET'): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: 'Bearer admin' };
    const options = { host: '127.0.0.1', port, path: maps, method, headers, rejectUnauthorized: false };
    const sent = request({ ...options, agent: false }, resolve);
    sent.on('error', reject);
    sent.end();
  });
}

test('streams a long list completely and serves other requests while it is being sent', async () => {
  await using harness = await FrontRig.open();
  const { answer, made } = countedList(3_000);
  harness.api.answer = () => answer;
  const response = await ask(harness.port);
  const before = made();
  assert.ok(before < 3_000, `${before} of 3,000 were serialized before the client read one`);
  const { status } = await harness.ask('/healthz');
  assert.equal(status, 200);
  let text = '';
  for await (const chunk of response) text += String(chunk);
  const { items } = JSON.parse(text) as {
    readonly items: readonly { readonly metadata: { readonly name: string } }[];
  };
  assert.deepEqual(
    items.map(({ metadata }) => metadata.name),
    Array.from({ length: 3_000 }, (_, index) => `c${index}`),
  );
});

test('responds to HEAD of a long list with the headers only', async () => {
  await using harness = await FrontRig.open();
  const { answer, made } = countedList(3_000);
  harness.api.answer = () => answer;
  const response = await ask(harness.port, 'HEAD');
  let text = '';
  for await (const chunk of response) text += String(chunk);
  assert.deepEqual([response.statusCode, text], [200, '']);
  assert.ok(made() < 3_000, String(made()));
});

test('stops serializing a list for a client that does not read, and then disconnects the client', async () => {
  const clock = new VirtualClock();
  await using harness = await FrontRig.open({ clock });
  const { answer, made } = countedList(5_000);
  harness.api.answer = () => answer;
  const response = await ask(harness.port);
  response.pause();
  response.on('error', () => {});
  let closed = false;
  response.on('close', () => (closed = true));
  let last = -1;
  // Waits until the kernel's socket buffers on both sides are full.
  await until('no more objects are serialized', () => {
    const isStill = made() === last && made() > 0;
    last = made();
    return isStill && clock.pendingTimers > 0;
  });
  assert.ok(made() < 5_000, `${made()} were serialized for a client that reads none`);
  await clock.advance(60_000);
  response.resume();
  await until('the connection is closed', () => closed);
  assert.equal(response.complete, false);
  assert.deepEqual(
    [...harness.logs.records].filter(({ severity }) => severity === 'error'),
    [],
  );
});
