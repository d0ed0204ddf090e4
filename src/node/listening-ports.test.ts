import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { ListeningPorts } from './listening-ports.ts';

/** Listens on a Unix socket and on a TCP port, as a container runtime with its streaming server does. */
const runtime = `
  const net = require('node:net');
  net.createServer().listen(process.argv[1], () => {
    const tcp = net.createServer().listen(0, '127.0.0.1', () => console.log(tcp.address().port));
  });`;

test('finds the ports of this process and of the process that listens on the runtime socket', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'kubeling-ports-'));
  const socket = join(directory, 'runtime.sock');
  const child = spawn(process.execPath, ['-e', runtime, socket], { stdio: ['ignore', 'pipe', 'inherit'] });
  const own = createServer().listen(0, '::1');
  const other = createServer().listen(0, '127.0.0.1');
  try {
    const [line] = await once(child.stdout, 'data');
    if (!own.listening) await once(own, 'listening');
    if (!other.listening) await once(other, 'listening');
    const ports = new ListeningPorts(socket);
    assert.equal(ports.ports.size, 0);
    await ports.refresh();
    const expected = [Number(String(line)), portOf(own), portOf(other)];
    assert.deepEqual(
      expected.filter((port) => !ports.ports.has(port)),
      [],
    );
    child.kill();
    await once(child, 'exit');
    await ports.refresh();
    assert.ok(!ports.ports.has(Number(String(line))));
  } finally {
    child.kill();
    own.close();
    other.close();
    rmSync(directory, { recursive: true, force: true });
  }
});

function portOf(server: ReturnType<typeof createServer>): number {
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}
