import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { KubelingError } from './errors.ts';
import { readJsonFile, removeLeftoverTemps, writeFileAtomic, writeJsonAtomic } from './files.ts';

async function directory(): Promise<AsyncDisposable & { path: string; file: string }> {
  const path = await mkdtemp(join(tmpdir(), 'kubeling-atomic-'));
  const remove = () => rm(path, { recursive: true, force: true });
  return { path, file: join(path, 'state'), [Symbol.asyncDispose]: remove };
}

const anything = { check: (value: unknown) => value };
const modeOf = async (path: string) => (await stat(path)).mode & 0o7777;

test('a file is written or replaced completely, and no temporary file is left', async () => {
  await using dir = await directory();
  await writeFileAtomic(dir.file, 'old and long', { mode: 0o600 });
  await writeFileAtomic(dir.file, new Uint8Array([110, 101, 119]), { mode: 0o600 });
  assert.equal(await readFile(dir.file, 'utf8'), 'new');
  assert.deepEqual(await readdir(dir.path), ['state']);
});

test('the mode of a written file is exact for any umask, also when it replaces a file of another mode', async () => {
  await using dir = await directory();
  const umask = process.umask(0o077);
  try {
    await writeFileAtomic(dir.file, '', { mode: 0o666 });
    assert.equal(await modeOf(dir.file), 0o666);
    process.umask(0);
    await writeFileAtomic(dir.file, '', { mode: 0o640 });
    assert.equal(await modeOf(dir.file), 0o640);
  } finally {
    process.umask(umask);
  }
});

test('a write that fails names the file and leaves no temporary file', async () => {
  await using dir = await directory();
  await mkdir(join(dir.file, 'inside'), { recursive: true });
  await assert.rejects(
    writeFileAtomic(dir.file, 'x', { mode: 0o600 }),
    (error: KubelingError) => error.code === 'FILE_WRITE' && error.message.includes(dir.file),
  );
  assert.deepEqual(await readdir(dir.path), ['state']);
  await assert.rejects(writeFileAtomic(join(dir.path, 'no', 'file'), 'x', { mode: 0o600 }), {
    code: 'FILE_WRITE',
  });
});

test('writing to a symbolic link replaces the link and does not change its target', async () => {
  await using dir = await directory();
  const target = join(dir.path, 'target');
  await writeFile(target, 'kept');
  await symlink(target, dir.file);
  await writeFileAtomic(dir.file, 'new', { mode: 0o600 });
  assert.equal(await readFile(target, 'utf8'), 'kept');
  assert.equal(await readFile(dir.file, 'utf8'), 'new');
});

test('concurrent writers of one file leave the complete content of one of them', async () => {
  await using dir = await directory();
  const contents = Array.from({ length: 20 }, (_, index) => String(index).repeat(10_000));
  await Promise.all(contents.map((content) => writeFileAtomic(dir.file, content, { mode: 0o600 })));
  assert.ok(contents.includes(await readFile(dir.file, 'utf8')));
  assert.deepEqual(await readdir(dir.path), ['state']);
});

test('removes temporary files of a crashed writer and no other files', async () => {
  await using dir = await directory();
  const leftover = '.kubeling-0123456789abcdef.tmp';
  for (const name of [leftover, '.kubeling-short.tmp', 'kubeling.tmp', 'state']) {
    await writeFile(join(dir.path, name), '');
  }
  assert.deepEqual(await removeLeftoverTemps(dir.path), [leftover]);
  assert.deepEqual((await readdir(dir.path)).sort(), ['.kubeling-short.tmp', 'kubeling.tmp', 'state']);
  assert.deepEqual(await removeLeftoverTemps(join(dir.path, 'missing')), []);
});

test('reading a JSON file returns the written value', async () => {
  await using dir = await directory();
  await writeJsonAtomic(dir.file, { pods: ['a'] }, { mode: 0o600 });
  assert.deepEqual(await readJsonFile(dir.file, anything), { pods: ['a'] });
});

test('a missing file is distinguished from a corrupt one', async () => {
  await using dir = await directory();
  await assert.rejects(readJsonFile(dir.file, anything), (error: KubelingError) => {
    return error.kind === 'NotFound' && error.message.includes(dir.file);
  });
  await assert.rejects(readJsonFile(dir.path, anything), { code: 'FILE_READ' });
});

test('corrupt content is reported by file and position, and never quoted', async () => {
  await using dir = await directory();
  const cases = [
    ['', /it is empty/],
    ['{"token":"s3cret"', /wrong at position 17/],
    ['{"token":', /ends early/],
    ['{"token":s3cret}', /must hold JSON/],
    ['s3cret', /must hold JSON/],
  ] as const;
  for (const [content, expected] of cases) {
    await writeFile(dir.file, content);
    await assert.rejects(readJsonFile(dir.file, anything), (error: KubelingError) => {
      assert.equal(error.code, 'FILE_CORRUPT');
      assert.match(error.message, expected);
      assert.match(error.message, new RegExp(`state in ${dir.path}`));
      assert.doesNotMatch(error.message, /s3cret/);
      assert.equal(error.cause, undefined);
      return true;
    });
  }
});

test('a value that the converter rejects is reported as FILE_CORRUPT', async () => {
  await using dir = await directory();
  await writeFile(dir.file, '{"version": 9}');
  const check = () => {
    throw new KubelingError('BUG', 'version must be 1: current value is 9');
  };
  await assert.rejects(
    readJsonFile(dir.file, { check }),
    /state in .* as version must be 1: current value is 9/,
  );
});

test('a file larger than the limit is rejected without reading it', async () => {
  await using dir = await directory();
  await writeFile(dir.file, '"12345"');
  await assert.rejects(
    readJsonFile(dir.file, { ...anything, maxBytes: 6 }),
    /at most 6 bytes: current size is 7/,
  );
});
