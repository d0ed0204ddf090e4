import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';

const repository = new URL('../..', import.meta.url).pathname;
const text = readFileSync(join(repository, 'docs/ARCHITECTURE.md'), 'utf8');

/** The rows of the table under a heading, without its head, each as its cells. */
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

/** The paths in a cell: `—` for none yet, or each in backticks. */
function pathsIn(cell: string): readonly string[] {
  return cell === '—' ? [] : [...cell.matchAll(/`([^`]+)`/g)].map((match) => match[1] ?? '');
}

const rooms = tableUnder('Rooms');
const words = tableUnder("The kubelet's words");

describe('docs/ARCHITECTURE.md', () => {
  it('has both tables, every row with all its columns', () => {
    assert.ok(rooms.length >= 20 && words.length >= 25, `${rooms.length} rooms, ${words.length} words`);
    for (const row of rooms) assert.equal(row.length, 3, row.join(' | '));
    for (const row of words) assert.equal(row.length, 4, row.join(' | '));
  });

  for (const row of [...rooms, ...words]) {
    const cell = row.at(-1) ?? '';
    it(`names only files that are there for ${row[0]?.slice(0, 60)}`, () => {
      assert.ok(cell === '—' || pathsIn(cell).length > 0, `neither — nor a path: ${cell}`);
      for (const path of pathsIn(cell)) assert.ok(existsSync(join(repository, path)), `${path} is gone`);
    });
  }

  it('lists every room that has a door, with it', () => {
    const entries = readdirSync(join(repository, 'src'), { withFileTypes: true });
    const open = entries.filter(
      (entry) => entry.isDirectory() && existsSync(join(repository, 'src', entry.name, 'index.ts')),
    );
    for (const { name } of open) {
      const row = rooms.find((cells) => cells[0] === name);
      assert.deepEqual(pathsIn(row?.[2] ?? ''), [`src/${name}/index.ts`], `the row of ${name}`);
    }
  });

  it('puts words only into rooms it lists', () => {
    const known = new Set([...rooms.map((row) => row[0]), 'docs', 'test']);
    for (const row of words) {
      for (const room of (row[2] ?? '').split(', ')) assert.ok(known.has(room), `${room} of ${row[0]}`);
    }
  });
});
