import assert from 'node:assert/strict';
import { linkSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { countFewFiles } from './few-files.ts';
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
const around = { mountPoints: () => [], rest: async () => 'go-on' } as const;

test('it comes to the same as a walk', async () => {
  using at = logs();
  const found = countFewFiles(tree(at.path), ['/', '/proc']);
  assert.deepEqual(found, await walkTree(tree(at.path), { ...around, rest: async () => 'go-on' as const }));
  assert.equal(found?.parts?.['main']?.inodesUsed, 2);
});

const others: Readonly<Record<string, (path: string) => void>> = {
  'a directory that is deeper': (path) => mkdirSync(join(path, 'main/deep')),
  'a file with two names': (path) => linkSync(join(path, 'main/0.log'), join(path, 'main/again')),
  'many files': (path) => {
    for (let file = 0; file < 65; file++) writeFileSync(join(path, 'main', String(file)), '');
  },
  'a name that is no text': (path) => writeFileSync(Buffer.from(`${path}/main/\xff`, 'latin1'), ''),
};
for (const [what, make] of Object.entries(others))
  test(`${what} is left to a walk`, () => {
    using at = logs();
    make(at.path);
    assert.equal(countFewFiles(tree(at.path), []), undefined);
  });

test('so is what has something mounted in it, is not there, or is wanted as a whole', () => {
  using at = logs();
  assert.equal(countFewFiles(tree(at.path), [join(at.path, 'main')]), undefined);
  assert.equal(countFewFiles(tree(join(at.path, 'nowhere')), []), undefined);
  assert.equal(countFewFiles({ path: at.path }, []), undefined);
});
