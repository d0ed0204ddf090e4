import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { hostKeptReader, KernelFiles } from './kept-reader.ts';

function folder() {
  const path = mkdtempSync(join(tmpdir(), 'klg-kept-'));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true }) };
}

const openNow = () => readdirSync('/proc/self/fd').length;

test('a file is opened once and read whole each time, and closed when it was not asked for a round', () => {
  using at = folder();
  const reader = hostKeptReader();
  const file = join(at.path, 'a');
  const before = openNow();
  for (const text of ['one\n', 'two and more\n', '3\n']) {
    writeFileSync(file, text);
    assert.equal(reader.in(at.path).look('a'), text);
  }
  assert.deepEqual([reader.size, openNow()], [1, before + 1]);
  reader.sweep();
  assert.equal(reader.size, 1, 'it was read');
  reader.sweep();
  assert.deepEqual([reader.size, openNow()], [0, before]);
  assert.equal(reader.in(at.path).look('a'), '3\n');
  reader.close();
  assert.equal(openNow(), before);
});

test('of what is not there nothing is told, and nothing stays open', () => {
  const reader = hostKeptReader();
  const before = openNow();
  assert.equal(reader.in('/nowhere/at').look('all'), undefined);
  assert.equal(reader.in('/').look('proc'), undefined, 'no file');
  assert.deepEqual([reader.size, openNow()], [0, before]);
  const kernel = new KernelFiles();
  assert.deepEqual(
    [kernel.look('/nowhere/at/all'), kernel.look('/proc'), openNow()],
    [undefined, undefined, before],
  );
});

test('what comes later, or comes back under its name, is found', () => {
  using at = folder();
  const reader = hostKeptReader();
  const look = () => reader.in(at.path).look('a');
  assert.deepEqual([look(), look()], [undefined, undefined]);
  writeFileSync(join(at.path, 'a'), 'here');
  assert.equal(look(), 'here');
  reader.close();
});

test('a long file is read to its end', () => {
  using at = folder();
  const text = Array.from({ length: 9_000 }, (_, index) => `${index}\n`).join('');
  writeFileSync(join(at.path, 'a'), text);
  const reader = hostKeptReader();
  assert.deepEqual(
    [reader.in(at.path).look('a') === text, new KernelFiles().look(join(at.path, 'a')) === text],
    [true, true],
  );
  reader.close();
});

test('files of the kernel tell what is now', async () => {
  const reader = hostKeptReader();
  const uptime = () => Number(reader.in('/proc').look('uptime')?.split(' ')[0]);
  const begin = uptime();
  while (uptime() <= begin) await new Promise((resolve) => setImmediate(resolve));
  reader.close();
});
