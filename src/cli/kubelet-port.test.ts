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

test('a kubelet is found by the port its root directory has written down', async () => {
  writeFileSync(portFile(rootDir), '34567\n');
  assert.deepEqual(await locateKubelet({ 'root-dir': rootDir }), { port: 34_567, rootDir });
});

test('a port that is given counts, and the token is still that of the root directory', async () => {
  writeFileSync(portFile(rootDir), '34567\n');
  assert.deepEqual(await locateKubelet({ 'root-dir': rootDir, port: 1_234 }), { port: 1_234, rootDir });
});

test('without a port that makes sense the usual one is tried', async () => {
  for (const written of [undefined, '', 'nonsense', '0', '70000', '1.5']) {
    if (written !== undefined) writeFileSync(portFile(rootDir), written);
    assert.deepEqual(await locateKubelet({ 'root-dir': rootDir }), { port: 10_250, rootDir });
  }
});

test('a data directory where nothing is up is no reason to ask somebody else', async () => {
  await assert.rejects(locateKubelet({ 'data-dir': rootDir }), /no kubeling is up there/);
  await assert.rejects(locateKubelet({ 'data-dir': join(rootDir, 'gone') }), /no such directory/);
});

test('the token is shown where it can be read', async () => {
  assert.deepEqual(await bearerOf({ port: 1, rootDir }), {});
  writeFileSync(tokenFile(rootDir), 'secret\n');
  assert.deepEqual(await bearerOf({ port: 1, rootDir }), { authorization: 'Bearer secret' });
});
