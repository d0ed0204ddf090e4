import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { hostKeptReader } from './kept-reader.ts';

function folder() {
  const path = mkdtempSync(join(tmpdir(), 'klg-kept-'));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true }) };
}

test('a file is opened once and read whole each time, and closed when it was not read for a round', async () => {
  using at = folder();
  const reader = hostKeptReader();
  const file = join(at.path, 'a');
  const before = readdirSync('/proc/self/fd').length;
  for (const text of ['one\n', 'two and more\n', '3\n']) {
    writeFileSync(file, text);
    assert.equal(await reader.read(file), text);
  }
  assert.deepEqual([reader.size, readdirSync('/proc/self/fd').length], [1, before + 1]);
  reader.sweep();
  assert.equal(reader.size, 1, 'it was read');
  reader.sweep();
  assert.deepEqual([reader.size, readdirSync('/proc/self/fd').length], [0, before]);
  assert.equal(await reader.read(file), '3\n');
  reader.close();
  assert.equal(readdirSync('/proc/self/fd').length, before);
});

test('what is not there fails as it does for all others, and nothing stays open', async () => {
  const reader = hostKeptReader();
  await assert.rejects(reader.read('/nowhere/at/all'), { code: 'ENOENT' });
  await assert.rejects(reader.read('/proc'), { code: 'EISDIR' });
  reader.close();
  assert.equal(reader.size, 0);
});

test('files of the kernel tell what is now', async () => {
  const reader = hostKeptReader();
  const uptime = async () => Number((await reader.read('/proc/uptime')).split(' ')[0]);
  const begin = await uptime();
  while ((await uptime()) <= begin) await new Promise((resolve) => setImmediate(resolve));
  reader.close();
});
