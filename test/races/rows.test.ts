import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { it } from 'node:test';
import { rows } from './rows.ts';

it('every listed race has a test with its name', async () => {
  const folder = import.meta.dirname;
  const files = (await readdir(folder)).filter((name) => name.endsWith('.test.ts'));
  const texts = await Promise.all(files.map((name) => readFile(`${folder}/${name}`, 'utf8')));
  const named = texts.flatMap((text) =>
    [...text.matchAll(/\bit\(\s*(['"`])(.+?)\1,/g)].map(([, , name]) => name ?? ''),
  );
  const missing = rows.filter((row) => !named.some((name) => name === row || name.startsWith(`${row}: `)));
  assert.deepEqual(missing, []);
  assert.equal(new Set(rows).size, rows.length);
});
