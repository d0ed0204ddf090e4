import assert from 'node:assert/strict';
import {
  chmod,
  chown,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { backupOf, changeUserFile } from './user-file.ts';

let directory = '';
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'kubeling-user-file-'));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

test('creates a missing file and its directories so that only their owner can access them', async () => {
  const path = join(directory, 'a', 'b', 'config');
  assert.equal(await changeUserFile(path, (text) => `${text}new\n`), 'made');
  assert.equal(await readFile(path, 'utf8'), 'new\n');
  assert.equal((await stat(path)).mode & 0o777, 0o600);
  assert.deepEqual(await readdir(join(directory, 'a', 'b')), ['config']);
});

test('restricts an existing file to its owner and writes a backup', async () => {
  const path = join(directory, 'config');
  await writeFile(path, 'old\n');
  await chmod(path, 0o640);
  assert.equal(await changeUserFile(path, (text) => `${text}new\n`), 'changed');
  assert.equal(await readFile(path, 'utf8'), 'old\nnew\n');
  assert.equal(await readFile(backupOf(path), 'utf8'), 'old\n');
  for (const one of [path, backupOf(path)]) assert.equal((await stat(one)).mode & 0o777, 0o600);
});

test('writes nothing when the content does not change', async () => {
  const path = join(directory, 'config');
  await writeFile(path, 'old\n');
  assert.equal(await changeUserFile(path, (text) => text), 'same');
  assert.deepEqual(await readdir(directory), ['config']);
  assert.equal(await changeUserFile(join(directory, 'none'), (text) => text), 'same');
});

test('preserves a symbolic link and changes its target', async () => {
  await writeFile(join(directory, 'real'), 'old\n');
  await symlink('real', join(directory, 'config'));
  await changeUserFile(join(directory, 'config'), () => 'new\n');
  assert.ok((await lstat(join(directory, 'config'))).isSymbolicLink());
  assert.equal(await readFile(join(directory, 'real'), 'utf8'), 'new\n');
});

test('leaves the file unchanged when the change function throws', async () => {
  const path = join(directory, 'config');
  await writeFile(path, 'old\n');
  const failing = () => {
    throw new Error('not a kubeconfig');
  };
  await assert.rejects(changeUserFile(path, failing), /not a kubeconfig/);
  assert.deepEqual(await readdir(directory), ['config']);
  assert.equal(await readFile(path, 'utf8'), 'old\n');
});

const isRoot = process.getuid?.() === 0;
test('does not write a file that another user has created in a shared directory', {
  skip: !isRoot,
}, async () => {
  await chmod(directory, 0o1777);
  const planted = join(directory, 'config');
  await writeFile(planted, '');
  await chown(planted, 12_345, 12_345);
  await assert.rejects(
    changeUserFile(planted, () => 'secret\n'),
    /belongs to the user 12345 in a directory that other users can write to/,
  );
  assert.equal(await readFile(planted, 'utf8'), '');
});

test('creates no file in a directory that another user has created in a shared directory', {
  skip: !isRoot,
}, async () => {
  await chmod(directory, 0o1777);
  await mkdir(join(directory, 'planted'));
  await chown(join(directory, 'planted'), 12_345, 12_345);
  await assert.rejects(
    changeUserFile(join(directory, 'planted', 'config'), () => 'secret\n'),
    /belongs to the user/,
  );
  assert.deepEqual(await readdir(join(directory, 'planted')), []);
});
