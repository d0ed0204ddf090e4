import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { portFile, tokenFile } from './data-directory/data-directory.ts';
import { bearerOf, locateKubelet } from './kubelet-port.ts';

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

test('uses the default port when the port file is invalid', async () => {
  for (const written of [undefined, '', 'nonsense', '0', '70000', '1.5']) {
    if (written !== undefined) writeFileSync(portFile(rootDir), written);
    assert.deepEqual(await locateKubelet({ 'root-dir': rootDir }), { port: 10_250, rootDir });
  }
});

test('asks no other kubelet when nothing is up in the data directory', async () => {
  await assert.rejects(locateKubelet({ 'data-dir': rootDir }), /kubeling is not up there/);
  await assert.rejects(locateKubelet({ 'data-dir': join(rootDir, 'gone') }), /directory does not exist/);
});

test('sends the token where it can be read', async () => {
  assert.deepEqual(await bearerOf({ port: 1, rootDir }), {});
  writeFileSync(tokenFile(rootDir), 'secret\n');
  assert.deepEqual(await bearerOf({ port: 1, rootDir }), { authorization: 'Bearer secret' });
});
