import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { portFile, tokenFile } from './data-directory/data-directory.ts';
import { bearerOf, getText, locateKubelet } from './kubelet-port.ts';

let rootDir: string;

beforeEach(() => {
  rootDir = mkdtempSync(join(tmpdir(), 'kubeling-port-'));
});
afterEach(() => rmSync(rootDir, { recursive: true, force: true }));

test('finds the kubelet by the port file in its root directory', async () => {
  writeFileSync(portFile(rootDir), '34567\n');
  assert.deepEqual(await locateKubelet({ 'root-dir': rootDir }), { port: 34_567, rootDir });
});

test('uses a given port with the token of the root directory', async () => {
  writeFileSync(portFile(rootDir), '34567\n');
  assert.deepEqual(await locateKubelet({ 'root-dir': rootDir, port: 1_234 }), { port: 1_234, rootDir });
});

test('rejects a root directory without a valid port file', async () => {
  for (const written of [undefined, '', 'nonsense', '0', '70000', '1.5']) {
    if (written !== undefined) writeFileSync(portFile(rootDir), written);
    await assert.rejects(locateKubelet({ 'root-dir': rootDir }), {
      code: 'KUBELET_SILENT',
      message: /has not listened yet/,
    });
  }
});

test('sends no token to a process of another user', { skip: process.getuid?.() !== 0 }, async () => {
  writeFileSync(tokenFile(rootDir), 'secret\n');
  const program =
    'process.setuid(65534); require("node:http").createServer((_, a) => a.end()).listen(0, "127.0.0.1", function () { console.log(this.address().port) })';
  const child = spawn(process.execPath, ['-e', program], { stdio: ['ignore', 'pipe', 'inherit'] });
  try {
    const [line] = await once(child.stdout, 'data');
    const port = Number(line);
    await assert.rejects(bearerOf({ port, rootDir }), {
      code: 'KUBELET_SILENT',
      message: /a process of the user 65534 listens there/,
    });
  } finally {
    child.kill();
  }
});

test('limits the size of a response, and the part of the response that error messages quote', async () => {
  const server = createServer((request, response) => {
    if (request.url === '/error') {
      response.statusCode = 500;
      response.end('x'.repeat(10_000));
    } else {
      const more = () => {
        while (response.write(Buffer.alloc(1 << 20)));
      };
      response.on('drain', more);
      more();
    }
  }).listen(0, '127.0.0.1');
  try {
    await once(server, 'listening');
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const { signal } = new AbortController();
    await assert.rejects(getText(`${url}/endless`, {}, signal), /more than 67108864 bytes/);
    await assert.rejects(
      getText(`${url}/error`, {}, signal),
      /^KubelingError: it responded with 500: x{1000}$/,
    );
  } finally {
    server.closeAllConnections();
    server.close();
  }
});

test('does not query another kubelet when kubeling is not running in the data directory', async () => {
  await assert.rejects(locateKubelet({ 'data-dir': rootDir }), /kubeling is not up there/);
  await assert.rejects(locateKubelet({ 'data-dir': join(rootDir, 'gone') }), /directory does not exist/);
});

test('sends the token only if the token file is readable', async () => {
  assert.deepEqual(await bearerOf({ port: 1, rootDir }), {});
  writeFileSync(tokenFile(rootDir), 'secret\n');
  assert.deepEqual(await bearerOf({ port: 1, rootDir }), { authorization: 'Bearer secret' });
});
