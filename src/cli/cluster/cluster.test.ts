import assert from 'node:assert/strict';
import { test } from 'node:test';
import { closeUnresponsive } from './cluster.ts';

function closedWith(env: Readonly<Record<string, string>>): readonly string[] {
  const closed: string[] = [];
  const connections = {
    closeSilent: () => void closed.push('silent'),
    closeConnections: () => void closed.push('all'),
  };
  closeUnresponsive(connections, env)();
  return closed;
}

test('closes unresponsive connections when heartbeats fail, and all connections when HTTP/2 is disabled', () => {
  assert.deepEqual(closedWith({}), ['silent']);
  assert.deepEqual(closedWith({ DISABLE_HTTP2: '' }), ['silent']);
  assert.deepEqual(closedWith({ DISABLE_HTTP2: 'true' }), ['all']);
});
