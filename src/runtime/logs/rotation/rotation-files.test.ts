import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { realRotationFiles } from './rotation-files.ts';

const never = new AbortController().signal;
const files = realRotationFiles();
let directory: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'klg-rotation-'));
});

afterEach(() => rm(directory, { recursive: true }));

const text = Array.from({ length: 50_000 }, (_, index) => `2026-01-01T00:00:00Z stdout F ${index}\n`).join(
  '',
);

test('compression keeps content and mode of a log, and removes the plain file', async () => {
  const path = join(directory, '0.log.20260101-000000');
  await writeFile(path, text, { mode: 0o640 });
  await writeFile(`${path}.tmp`, 'left by a killed process');
  await files.compress(path, never);
  assert.deepEqual(await readdir(directory), ['0.log.20260101-000000.gz']);
  assert.equal(String(gunzipSync(await readFile(`${path}.gz`))), text);
  assert.equal((await stat(`${path}.gz`)).mode & 0o777, 0o640);
});

test('a cancelled compression leaves the plain file', async () => {
  const path = join(directory, '0.log.20260101-000000');
  await writeFile(path, text);
  const controller = new AbortController();
  const work = files.compress(path, controller.signal);
  controller.abort(new Error('enough'));
  await assert.rejects(work, { code: 'FILE_WRITE' });
  assert.deepEqual(await readdir(directory), ['0.log.20260101-000000']);
});

test('the size of a missing file is undefined, and symlinks are not followed', async () => {
  await files.compress(join(directory, 'gone'), never);
  const path = join(directory, '0.log.20260101-000000');
  await writeFile(join(directory, 'secret'), text);
  await symlink(join(directory, 'secret'), path);
  await assert.rejects(files.compress(path, never), { code: 'FILE_WRITE' });
  assert.equal(await files.size(path), undefined);
  assert.deepEqual(await files.list(directory), [{ name: 'secret', bytes: text.length }]);
});

test('putBack restores the previous name of a file only if no other file has this name', async () => {
  const [from, to] = [join(directory, 'a'), join(directory, 'b')];
  await writeFile(from, 'old');
  await writeFile(to, 'new');
  assert.equal(await files.restore(from, to), 'taken');
  await files.remove(to);
  assert.equal(await files.restore(from, to), 'done');
  assert.deepEqual([await readdir(directory), await readFile(to, 'utf8')], [['b'], 'old']);
  await files.remove(from);
  assert.deepEqual([await files.size(from), await files.list(join(directory, 'no'))], [undefined, []]);
  assert.ok(((await files.freeBytes(directory)) ?? 0) > 0);
});
