import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../test/fakes/virtual-clock.ts';
import type { Request, Response, Route } from './router.ts';
import { flagzRoute, statuszRoute } from './status-pages.ts';

const { signal } = new AbortController();

async function ask(route: Route, accept?: string): Promise<Response> {
  const request: Request = {
    method: 'GET',
    path: route.path,
    params: {},
    query: new URLSearchParams(),
    headers: accept === undefined ? {} : { accept },
    body: async () => '',
  };
  return await route.answer(request, signal);
}

const clock = new VirtualClock();
const statusz = statuszRoute({
  clock,
  startMs: clock.now() - 90_500,
  version: '1.36.4',
  platform: 'nodejs 26',
  paths: () => ['/healthz', '/pods'],
});

test('status pages return text when the Accept header requests no object', async () => {
  for (const accept of [undefined, '', 'text/plain', '*/*', 'application/json, */*']) {
    const { status, body, contentType } = await ask(statusz, accept);
    assert.equal(status, 200);
    assert.match(contentType, /^text\/plain/);
    assert.match(String(body), /^Up: 90 seconds$/m);
    assert.match(String(body), /^Binary version: 1\.36\.4$/m);
  }
});

test('status pages return the object when the client accepts it', async () => {
  const accept = 'application/json;v=v1beta1;g=config.k8s.io;as=Statusz';
  const { contentType, body } = await ask(statusz, accept);
  assert.equal(contentType, 'application/json');
  const { apiVersion, kind, uptimeSeconds, emulationVersion, paths } = JSON.parse(String(body));
  assert.deepEqual([apiVersion, kind], ['config.k8s.io/v1beta1', 'Statusz']);
  assert.deepEqual([uptimeSeconds, emulationVersion, paths], [90, '1.36', ['/healthz', '/pods']]);
  const flagz = flagzRoute(() => ({ 'cert-dir': '/pki' }));
  const flags = await ask(flagz, 'application/yaml; as=Flagz; v=v1alpha1; g=config.k8s.io');
  assert.equal(flags.contentType, 'application/yaml');
  assert.deepEqual(JSON.parse(String(flags.body)).flags, { 'cert-dir': '/pki' });
  assert.match(String((await ask(flagz)).body), /^cert-dir=\/pki$/m);
});

test('status pages reject unsupported formats', async () => {
  for (const accept of [
    'application/json',
    'application/json;v=v1;g=config.k8s.io;as=Statusz',
    'application/json;v=v1beta1;g=config.k8s.io;as=Flagz',
    'application/vnd.kubernetes.protobuf',
  ]) {
    assert.equal((await ask(statusz, accept)).status, 406, accept);
  }
});
