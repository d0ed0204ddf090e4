import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect } from 'node:net';
import { test } from 'node:test';
import { nodeHttp } from '../../lib/index.ts';
import { ConnectionGuard } from './connection-guard.ts';

test('stops parsing the current chunk of a connection with too many unanswered requests, and calls the end callback of each started request', async () => {
  const guard = new ConnectionGuard();
  const observed = { parsed: 0, started: 0, ended: 0 };
  const server = nodeHttp.createServer((incoming, outgoing) => {
    observed.parsed++;
    guard.serve(incoming, outgoing, (onEnd) => {
      observed.started++;
      onEnd(() => observed.ended++);
    });
  });
  guard.track(server);
  server.listen(0, '127.0.0.1');
  try {
    await once(server, 'listening');
    const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
    const closed = new Promise((resolve) => void client.on('error', () => {}).once('close', resolve));
    client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(1_000));
    await closed;
    assert.deepEqual(observed, { parsed: 9, started: 8, ended: 8 });
  } finally {
    server.close();
  }
});
