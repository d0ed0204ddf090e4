import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';

const repository = new URL('../..', import.meta.url).pathname;
const text = readFileSync(join(repository, 'docs/ARCHITECTURE.md'), 'utf8');

/** Returns the cells of each row of the table under a heading, without the header. */
function tableUnder(heading: string): readonly (readonly string[])[] {
  const section = text.split(/^## /m).find((part) => part.startsWith(heading)) ?? '';
  const lines = section.split('\n').filter((line) => line.startsWith('| '));
  return lines.slice(2).map((line) =>
    line
      .slice(1, -1)
      .split(' | ')
      .map((cell) => cell.trim()),
  );
}

/** Returns the paths in a cell, each in backticks. */
function pathsIn(cell: string): readonly string[] {
  return [...cell.matchAll(/`([^`]+)`/g)].map((match) => match[1] ?? '');
}

const packages = tableUnder('Packages');
const concepts = tableUnder('Concepts of the Go kubelet');

describe('the tables of docs/ARCHITECTURE.md', () => {
  it('contains both tables of packages with complete rows', () => {
    assert.ok(
      packages.length >= 20 && concepts.length >= 25,
      `${packages.length} packages, ${concepts.length} concepts`,
    );
    for (const row of packages) assert.equal(row.length, 3, row.join(' | '));
    for (const row of concepts) assert.equal(row.length, 4, row.join(' | '));
  });

  for (const row of [...packages, ...concepts]) {
    const cell = row.at(-1) ?? '';
    it(`names existing files in the row ${row[0]?.slice(0, 60)}`, () => {
      assert.ok(pathsIn(cell).length > 0, `no path: ${cell}`);
      for (const path of pathsIn(cell))
        assert.ok(existsSync(join(repository, path)), `${path} does not exist`);
    });
  }

  it('lists every package with its entry point', () => {
    const entries = readdirSync(join(repository, 'src'), { withFileTypes: true });
    const open = entries.filter(
      (entry) => entry.isDirectory() && existsSync(join(repository, 'src', entry.name, 'index.ts')),
    );
    for (const { name } of open) {
      const row = packages.find((cells) => cells[0] === name);
      assert.deepEqual(pathsIn(row?.[2] ?? ''), [`src/${name}/index.ts`], `the row of ${name}`);
    }
  });

  it('assigns concepts only to listed packages', () => {
    const known = new Set([...packages.map((row) => row[0]), 'docs', 'test']);
    for (const row of concepts) {
      for (const name of (row[2] ?? '').split(', ')) assert.ok(known.has(name), `${name} of ${row[0]}`);
    }
  });
});
