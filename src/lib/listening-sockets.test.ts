import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { test } from 'node:test';
import { listeningSockets } from './listening-sockets.ts';

test('lists the listening sockets with their ports and users', async () => {
  for (const host of ['127.0.0.1', '::1']) {
    const server = createServer().listen(0, host);
    try {
      await new Promise((resolve) => server.once('listening', resolve));
      const { port } = server.address() as { port: number };
      const found = (await listeningSockets()).filter((socket) => socket.port === port);
      assert.deepEqual(
        found.map(({ uid }) => uid),
        [process.getuid?.()],
      );
    } finally {
      server.close();
    }
  }
});

test('lists no sockets if the kernel has no socket tables', async () => {
  assert.deepEqual(await listeningSockets('/nowhere'), []);
});
