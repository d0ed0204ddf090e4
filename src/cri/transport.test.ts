import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isKind, KubelingError } from '../lib/index.ts';
import { parseEndpoint } from './transport.ts';

test('a runtime endpoint may be a path or the equivalent unix URL', () => {
  const target = 'unix:///run/containerd/containerd.sock';
  assert.equal(parseEndpoint('/run/containerd/containerd.sock'), target);
  assert.equal(parseEndpoint('unix:///run/containerd/containerd.sock'), target);
});

for (const endpoint of [
  'tcp://127.0.0.1:1234',
  'http://x',
  'npipe:////./pipe/x',
  'run/x.sock',
  'unix://run/x.sock',
  '',
  'unix://',
]) {
  test(`rejects the runtime endpoint ${JSON.stringify(endpoint)} and names it`, () => {
    assert.throws(
      () => parseEndpoint(endpoint),
      (error) =>
        error instanceof KubelingError &&
        error.code === 'CRI_ENDPOINT' &&
        isKind(error, 'Invalid') &&
        error.message.includes('must be unix:// with an absolute path') &&
        error.message.endsWith(JSON.stringify(endpoint)),
    );
  });
}

test('rejects a socket path longer than the maximum of unix sockets, counted in bytes', () => {
  assert.equal(parseEndpoint(`/${'a'.repeat(106)}`), `unix:///${'a'.repeat(106)}`);
  assert.throws(() => parseEndpoint(`/${'a'.repeat(107)}`), /at most 107 bytes: .* has 108/);
  assert.throws(() => parseEndpoint(`unix:///${'ü'.repeat(60)}`), /has 121/);
});
