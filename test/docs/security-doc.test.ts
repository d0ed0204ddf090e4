import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { renderListeners } from '../listeners/table.ts';

const repository = new URL('../..', import.meta.url).pathname;
const read = (path: string) => readFileSync(join(repository, path), 'utf8');
const isThere = (path: string) => existsSync(join(repository, path));

/** Returns the cells of the rows of all tables below a heading, without the table headers. */
function rowsUnder(text: string, heading: RegExp): readonly (readonly string[])[] {
  const sections = text.split(/^## /m).filter((part) => heading.test(part));
  return sections
    .flatMap((section) =>
      section
        .split('\n')
        .filter((line) => line.startsWith('| '))
        .slice(2),
    )
    .map((line) =>
      line
        .slice(1, -1)
        .split(' | ')
        .map((cell) => cell.trim()),
    );
}

function testsIn(cell = ''): readonly string[] {
  return [...cell.matchAll(/`([^`]+)`/g)].map(([, path = '']) => path);
}

function idsIn(text: string): readonly string[] {
  return text.match(/CVE-\d{4}-\d{4,}/g) ?? [];
}

const boundaries = rowsUnder(read('docs/SECURITY.md'), /^What each boundary promises/);
const rows = rowsUnder(read('docs/security-cves.md'), /^(?:runc|Kubernetes nodes|Earlier)/);

describe('docs/SECURITY.md', () => {
  it('names existing tests for each security promise', () => {
    assert.ok(boundaries.length >= 20, `${boundaries.length} boundaries`);
    for (const row of boundaries) {
      assert.equal(row.length, 3, row.join(' | '));
      const tests = testsIn(row[2]);
      assert.ok(tests.length > 0, `no test holds: ${row.join(' | ')}`);
      for (const path of tests) assert.ok(path.endsWith('.test.ts') && isThere(path), path);
    }
  });

  it('contains the same listeners as the listener test', () => {
    const shown = rowsUnder(read('docs/SECURITY.md'), /^What listens/);
    assert.deepEqual(
      shown.map((cells) => `| ${cells.join(' | ')} |`),
      renderListeners(),
    );
  });

  it('is linked from SECURITY.md and the README', () => {
    for (const path of ['SECURITY.md', 'README.md'])
      assert.ok(read(path).includes('(docs/SECURITY.md)'), path);
  });
});

describe('docs/security-cves.md', () => {
  it('lists each vulnerability once, with its status', () => {
    assert.ok(rows.length >= 45, `${rows.length} rows`);
    const ids = rows.flatMap(([id = '']) => id.split(', '));
    assert.deepEqual(
      ids.filter((id, index) => !/^CVE-\d{4}-\d{4,}$/.test(id) || ids.indexOf(id) !== index),
      [],
    );
    for (const row of rows) {
      assert.equal(row.length, 4, row.join(' | '));
      assert.match(row[2] ?? '', /^\*\*(?:Refused|Not affected|Runtime|Fixed)\*\*/);
    }
  });

  it('names existing tests, and at least one where kubeling itself prevents the vulnerability', () => {
    for (const [id, , verdict = '', held = ''] of rows) {
      const tests = testsIn(held);
      for (const path of tests) assert.ok(path.endsWith('.test.ts') && isThere(path), `${id}: ${path}`);
      const mayBeNone = /^\*\*(?:Not affected|Runtime)/.test(verdict);
      assert.ok(tests.length > 0 || (mayBeNone && held === '—'), `${id} has no test: ${held}`);
    }
  });

  it('lists every vulnerability that a test name contains, together with that test', () => {
    const files = globSync('{src,test}/**/*.test.ts', { cwd: repository });
    for (const file of files) {
      const titles = read(file).match(/\b(?:it|test|describe)\(\s*(['"`]).*?\1/gs) ?? [];
      for (const id of titles.flatMap(idsIn)) {
        const row = rows.find(([ids = '']) => idsIn(ids).includes(id));
        assert.ok(testsIn(row?.[3]).includes(file), `${id} of ${file}`);
      }
    }
  });
});
