import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hostIps } from './host-ips.ts';

const node = (...addresses: readonly (readonly [string, string])[]) => ({
  status: { addresses: addresses.map(([type, address]) => ({ type, address })) },
});

test('internal addresses come before external ones, and one of each family is enough', () => {
  assert.deepEqual(hostIps({}), []);
  assert.deepEqual(hostIps(node(['Hostname', 'n1'])), []);
  assert.deepEqual(hostIps(node(['ExternalIP', '5.5.5.5'], ['InternalIP', '10.0.0.1'])), ['10.0.0.1']);
  const dual = node(['InternalIP', 'fd00::1'], ['InternalIP', 'fd00::2'], ['ExternalIP', '5.5.5.5']);
  assert.deepEqual(hostIps(dual), ['fd00::1', '5.5.5.5']);
});
