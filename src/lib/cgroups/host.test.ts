import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { KernelFiles, OpenDirectoryFiles } from './host.ts';

function folder() {
  const path = mkdtempSync(join(tmpdir(), 'klg-kept-'));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true }) };
}

const keep = (path: string) => new OpenDirectoryFiles(path, new KernelFiles());
const openNow = () => readdirSync('/proc/self/fd').length;

test('reads an open kernel file completely each time, and opens it once until all files are closed', () => {
  using at = folder();
  const files = keep(at.path);
  const before = openNow();
  for (const text of ['one\n', 'two and more\n', '3\n']) {
    writeFileSync(join(at.path, 'a'), text);
    assert.equal(files.read('a'), text);
  }
  assert.equal(openNow(), before + 1);
  files.close();
  assert.equal(openNow(), before);
  assert.equal(files.read('a'), '3\n');
  files.close();
});

test('returns undefined for a missing file and leaves no file open', () => {
  const before = openNow();
  assert.equal(keep('/nowhere/at').read('all'), undefined);
  assert.equal(keep('/').read('proc'), undefined, 'no file');
  const kernel = new KernelFiles();
  assert.deepEqual([kernel.read('/nowhere/at/all'), kernel.read('/proc')], [undefined, undefined]);
  assert.equal(openNow(), before);
});

test('finds a file that is created later', () => {
  using at = folder();
  const files = keep(at.path);
  assert.deepEqual([files.read('a'), files.read('a')], [undefined, undefined]);
  writeFileSync(join(at.path, 'a'), 'here');
  assert.equal(files.read('a'), 'here');
  files.close();
});

test('reads a long file to its end', () => {
  using at = folder();
  const text = Array.from({ length: 9_000 }, (_, index) => `${index}\n`).join('');
  writeFileSync(join(at.path, 'a'), text);
  const files = keep(at.path);
  assert.ok(files.read('a') === text && new KernelFiles().read(join(at.path, 'a')) === text);
  files.close();
});

test('reads a kernel file to its end when it is returned in several parts', () => {
  const files = keep('/proc');
  for (const text of [
    files.read('self/maps'),
    files.read('self/maps'),
    new KernelFiles().read('/proc/self/maps'),
  ])
    assert.ok(text?.includes('[stack]') && text.length > 4_096, 'what comes last is there');
  files.close();
});

test('reads current values of kernel files', async () => {
  const files = keep('/proc');
  const uptime = () => Number(files.read('uptime')?.split(' ')[0]);
  const begin = uptime();
  while (uptime() <= begin) await new Promise((resolve) => setImmediate(resolve));
  files.close();
});
