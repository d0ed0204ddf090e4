import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  linkSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { type WalkContext, walkTree } from './walk.ts';

const around: WalkContext = { mountPoints: () => [], rest: async () => 'continue' };

function directory(): Disposable & { readonly path: string } {
  const path = mkdtempSync(join(tmpdir(), 'klg-walk-'));
  // Uses the `rm` program, because Node.js cannot remove very deep trees or names that are not
  // UTF-8.
  return { path, [Symbol.dispose]: () => void execFileSync('rm', ['-rf', path]) };
}

/** The disk usage as the `du` program counts it. */
function counted(path: string) {
  const number = (...what: readonly string[]) =>
    Number(/^\d+/.exec(execFileSync('du', ['-s', '-x', ...what, path], { encoding: 'utf8' }))?.[0]);
  return { usedBytes: number('-B1'), inodesUsed: number('--inodes') };
}

async function count(path: string) {
  const { usedBytes, inodesUsed, isComplete } = await walkTree({ path }, around);
  assert.equal(isComplete, true);
  return { usedBytes, inodesUsed };
}

test('counts hard links, sparse files, symbolic links and names that are not UTF-8 like du', async () => {
  using at = directory();
  mkdirSync(join(at.path, 'a/b'), { recursive: true });
  writeFileSync(join(at.path, 'a/file'), Buffer.alloc(100_000, 1));
  linkSync(join(at.path, 'a/file'), join(at.path, 'a/b/again'));
  writeFileSync(join(at.path, 'holes'), '');
  truncateSync(join(at.path, 'holes'), 1 << 30);
  symlinkSync('/usr', join(at.path, 'a/usr'));
  symlinkSync('/', join(at.path, 'root'));
  mkdirSync(Buffer.from(`${at.path}/\xff\xfe`, 'latin1'));
  writeFileSync(Buffer.from(`${at.path}/\xff\xfe/\x80`, 'latin1'), Buffer.alloc(5_000));
  const found = await count(at.path);
  assert.deepEqual(found, counted(at.path));
  assert.ok(found.usedBytes > 100_000 && found.usedBytes < 200_000, `${found.usedBytes}`);
  assert.equal(found.inodesUsed, 9);
});

test('counts any tree like du', async () => {
  const name = fc.constantFrom('a', 'b', 'c', 'd');
  const step = fc.record({
    way: fc.array(name, { minLength: 1, maxLength: 5 }),
    what: fc.constantFrom('file', 'directory', 'hard', 'soft'),
    size: fc.nat(20_000),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
      using at = directory();
      for (const { way, what, size } of steps) {
        const path = join(
          at.path,
          ...way.map((part, index) => (index < way.length - 1 ? part : `${part}-${what}`)),
        );
        try {
          mkdirSync(join(path, '..'), { recursive: true });
          if (what === 'file') writeFileSync(path, Buffer.alloc(size, 1));
          else if (what === 'directory') mkdirSync(path);
          else if (what === 'soft') symlinkSync('..', path);
          else linkSync(join(at.path, 'a-file'), path);
        } catch {
          // The error is ignored: a random tree may contain a name twice, or a hard link whose
          // target does not exist.
        }
      }
      assert.deepEqual(await count(at.path), counted(at.path));
    }),
    { numRuns: 25 },
  );
});

test('counts a directory tree of any depth', async () => {
  using at = directory();
  const deep = 'd'.repeat(200);
  // Creates 60 nested directories, because their path is longer than PATH_MAX.
  const script = `
    for (let i = 0; i < 60; i++) { fs.mkdirSync('${deep}'); process.chdir('${deep}'); }
    fs.writeFileSync('file', Buffer.alloc(50000, 1));`;
  execFileSync(process.execPath, ['-e', script], { cwd: at.path });
  const { usedBytes, inodesUsed } = await count(at.path);
  assert.equal(inodesUsed, 62);
  assert.ok(usedBytes >= 50_000);
});

test('tolerates files that are removed or moved during the walk', async () => {
  using at = directory();
  for (let index = 0; index < 10; index++) {
    mkdirSync(join(at.path, `d${index}/inner`), { recursive: true });
    for (let file = 0; file < 300; file++) writeFileSync(join(at.path, `d${index}`, `f${file}`), '');
  }
  let rests = 0;
  const rest = async () => {
    rests++;
    if (rests === 2) for (const gone of [1, 2, 3]) rmSync(join(at.path, `d${gone}`), { recursive: true });
    if (rests === 4) renameSync(join(at.path, 'd5'), join(at.path, 'd6/moved'));
    return 'continue' as const;
  };
  const { inodesUsed } = await walkTree({ path: at.path }, { ...around, rest });
  assert.ok(rests > 4, 'rests are taken');
  assert.ok(inodesUsed > 300 && inodesUsed <= 3_021, `${inodesUsed}`);
});

test('reports the partial usage when the walk is stopped', async () => {
  using at = directory();
  for (let file = 0; file < 1_000; file++) writeFileSync(join(at.path, `f${file}`), '');
  const looks: number[] = [];
  const usage = await walkTree(
    { path: at.path },
    {
      ...around,
      rest: async (number) => {
        looks.push(number);
        return looks.length === 2 ? 'stop' : 'continue';
      },
    },
  );
  assert.equal(usage.isComplete, false);
  assert.equal(
    usage.inodesUsed,
    looks.reduce((sum, each) => sum + each, 1),
  );
  assert.ok(looks.every((each) => each <= 300));
});

test('does not access directories on which a file system is mounted', async () => {
  using at = directory();
  mkdirSync(join(at.path, 'a/mounted/inner'), { recursive: true });
  writeFileSync(join(at.path, 'a/mounted/file'), Buffer.alloc(100_000, 1));
  const usage = await walkTree(
    { path: at.path },
    { ...around, mountPoints: () => ['/', join(at.path, 'a/mounted')] },
  );
  assert.deepEqual([usage.inodesUsed, usage.isComplete], [2, true]);
});

test('reports the usage by subdirectory, and files next to the subdirectories under the empty name', async () => {
  using at = directory();
  mkdirSync(join(at.path, 'one/deep'), { recursive: true });
  mkdirSync(join(at.path, 'two'));
  writeFileSync(join(at.path, 'one/deep/file'), Buffer.alloc(10_000, 1));
  writeFileSync(join(at.path, 'beside'), Buffer.alloc(3_000, 1));
  const { parts = {}, ...whole } = await walkTree({ path: at.path, parts: 'by-directory' }, around);
  assert.deepEqual(
    Object.entries(parts)
      .map(([name, { inodesUsed }]) => [name, inodesUsed])
      .sort(),
    [
      ['', 2],
      ['one', 3],
      ['two', 1],
    ],
  );
  assert.ok((parts['one']?.usedBytes ?? 0) >= 10_000);
  assert.equal(whole.inodesUsed, 6);
  assert.equal(whole.usedBytes, counted(at.path).usedBytes);
});

test('reads a directory with very many subdirectories in parts', async () => {
  using at = directory();
  for (let index = 0; index < 5_000; index++) mkdirSync(join(at.path, `d${index}`));
  assert.equal((await count(at.path)).inodesUsed, 5_001);
});

test('counts a single file', async () => {
  using at = directory();
  const path = join(at.path, 'file');
  writeFileSync(path, Buffer.alloc(10_000, 1));
  const { usedBytes, inodesUsed, isComplete } = await walkTree({ path }, around);
  assert.deepEqual([usedBytes, inodesUsed, isComplete], [counted(path).usedBytes, 1, true]);
});

test('rejects a directory that does not exist', async () => {
  await assert.rejects(walkTree({ path: '/nowhere/at/all' }, around), { code: 'ENOENT' });
});
