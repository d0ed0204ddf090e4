import assert from 'node:assert/strict';
import { test } from 'node:test';
import { defaultApiPort, parseListen } from './listen-address.ts';

test('uses the default loopback address and port where they are omitted', () => {
  assert.deepEqual(parseListen(undefined), { host: '127.0.0.1', port: defaultApiPort });
  assert.deepEqual(parseListen('8000'), { host: '127.0.0.1', port: 8_000 });
  assert.deepEqual(parseListen('10.0.0.1'), { host: '10.0.0.1', port: defaultApiPort });
  assert.deepEqual(parseListen('::'), { host: '::', port: defaultApiPort });
});

test('accepts an address and a port', () => {
  assert.deepEqual(parseListen('0.0.0.0:7000'), { host: '0.0.0.0', port: 7_000 });
  assert.deepEqual(parseListen('[::1]:7000'), { host: '::1', port: 7_000 });
  assert.deepEqual(parseListen('127.0.0.1:0'), { host: '127.0.0.1', port: 0 });
});

test('rejects text that is neither an address, a port nor both, and quotes it', () => {
  for (const text of ['here', 'here:80', '70000', '1.2.3.4:70000', ':80x'])
    assert.throws(() => parseListen(text), /--listen must be/, text);
});
