import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { MountPoints } from '../mountinfo.ts';
import { SmallTreeCounter } from './small-trees.ts';
import { walkTree } from './walk.ts';

function logs() {
  const path = mkdtempSync(join(tmpdir(), 'klg-few-'));
  for (const name of ['main', 'side']) mkdirSync(join(path, name));
  writeFileSync(join(path, 'main/0.log'), Buffer.alloc(20_000, 1));
  writeFileSync(join(path, 'side/0.log'), '');
  symlinkSync('0.log', join(path, 'side/last'));
  writeFileSync(join(path, 'beside'), 'x');
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true }) };
}

const tree = (path: string) => ({ path, parts: 'by-directory' }) as const;
const around = { mountPoints: () => [], rest: async () => 'continue' as const };
const mounted =
  (...places: readonly string[]) =>
  () =>
    new MountPoints(places);
const nothing = mounted('/', '/proc');
const later = Date.now() + 60_000;
/**
 * Returns a counter that caches directories at the first count, because its clock makes their last
 * changes old enough.
 */
const remembering = () => new SmallTreeCounter(() => later);

test('counts a small directory the same as a walk', async () => {
  using at = logs();
  const found = new SmallTreeCounter(Date.now).count(tree(at.path), nothing);
  assert.deepEqual(found, await walkTree(tree(at.path), around));
  assert.ok(typeof found === 'object');
  assert.equal(found.parts?.['main']?.inodesUsed, 2);
});

test('counts a single file the same as a walk', async () => {
  using at = logs();
  for (const what of [{ path: join(at.path, 'beside') }, tree(join(at.path, 'side/last'))])
    assert.deepEqual(new SmallTreeCounter(Date.now).count(what, nothing), await walkTree(what, around));
});

/**
 * Waits until the file system stores a new time for changes, because file systems store times in
 * steps.
 */
function awaitNextTime(path: string): void {
  const { ctimeMs } = lstatSync(join(path, 'main'));
  const probe = `${path}-probe`;
  do writeFileSync(probe, '');
  while (lstatSync(probe).ctimeMs <= ctimeMs);
  rmSync(probe);
}

const changes: Readonly<Record<string, (path: string) => void>> = {
  'a log that grows': (path) => appendFileSync(join(path, 'main/0.log'), Buffer.alloc(50_000, 1)),
  'a log that is rotated': (path) => {
    renameSync(join(path, 'main/0.log'), join(path, 'main/0.log.1'));
    writeFileSync(join(path, 'main/0.log'), 'x');
  },
  'a log that is removed': (path) => rmSync(join(path, 'main/0.log')),
  'a file beside them': (path) => writeFileSync(join(path, 'another'), Buffer.alloc(9_000)),
  'a new container directory': (path) => {
    mkdirSync(join(path, 'new'));
    writeFileSync(join(path, 'new/0.log'), 'x');
  },
  'a removed container directory': (path) => rmSync(join(path, 'side'), { recursive: true }),
  'a file that becomes a directory': (path) => {
    rmSync(join(path, 'beside'));
    mkdirSync(join(path, 'beside'));
    writeFileSync(join(path, 'beside/inner'), 'x');
  },
};
for (const [what, change] of Object.entries(changes))
  test(`after a change of a cached tree the count is the same as that of a walk: ${what}`, async () => {
    using at = logs();
    const files = remembering();
    const before = await walkTree(tree(at.path), around);
    for (const _ of [1, 2]) assert.deepEqual(files.count(tree(at.path), nothing), before);
    awaitNextTime(at.path);
    change(at.path);
    assert.deepEqual(files.count(tree(at.path), nothing), await walkTree(tree(at.path), around));
  });

const skip = process.getuid?.() === 0 ? false : 'needs root';
test('does not count a mount over a cached directory', { skip }, () => {
  using at = logs();
  const files = remembering();
  const before = files.count(tree(at.path), nothing);
  assert.deepEqual(files.count(tree(at.path), nothing), before);
  const [over, point] = [join(at.path, 'side'), join(at.path, 'main')];
  execFileSync('mount', ['--bind', over, point]);
  try {
    assert.equal(files.count(tree(at.path), mounted('/', point)), undefined);
  } finally {
    execFileSync('umount', [point]);
  }
  assert.deepEqual(files.count(tree(at.path), nothing), before);
});

test('counts new files in a directory that changed immediately before the last count', async () => {
  using at = logs();
  const files = new SmallTreeCounter(Date.now);
  for (let file = 0; file < 20; file++) {
    writeFileSync(join(at.path, 'main', String(file)), '');
    assert.deepEqual(files.count(tree(at.path), nothing), await walkTree(tree(at.path), around));
  }
});

const rest: Readonly<Record<string, (path: string) => void>> = {
  'a directory that is deeper': (path) => mkdirSync(join(path, 'main/deep')),
  'a file with two names': (path) => linkSync(join(path, 'main/0.log'), join(path, 'main/again')),
  'many files': (path) => {
    for (let file = 0; file < 65; file++) writeFileSync(join(path, 'main', String(file)), '');
  },
  'a name that is no text': (path) => writeFileSync(Buffer.from(`${path}/main/\xff`, 'latin1'), ''),
};
for (const [what, make] of Object.entries(rest))
  test(`returns undefined for ${what}, so that a walk counts it`, () => {
    using at = logs();
    make(at.path);
    assert.equal(remembering().count(tree(at.path), nothing), undefined);
  });

test('returns undefined for a tree with mounts, and for a request without usage by subdirectory, so that a walk counts it', () => {
  using at = logs();
  const files = remembering();
  assert.equal(files.count(tree(at.path), mounted('/', join(at.path, 'main'), '/zzz')), undefined);
  assert.equal(files.count({ path: at.path }, nothing), undefined);
  assert.equal(files.count(tree(join(at.path, 'nowhere')), nothing), 'gone');
});

test('finds mounts below a directory among all mounts', () => {
  const mounts = new MountPoints(['/', '/a', '/a/b', '/a-b/c', '/a.b', '/z/y']);
  const requested = ['/a', '/a/b', '/a-b', '/a.b', '/z', '/zz', '/0', '/a-'];
  assert.deepEqual(
    requested.filter((path) => mounts.isAnyBelow(path)),
    ['/a', '/a-b', '/z'],
  );
});
