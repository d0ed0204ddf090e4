import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { errorKinds } from '../../src/lib/index.ts';
import { differences, rowsOf } from './error-table.ts';

const page = new URL('../../docs/errors.md', import.meta.url);
const row = (code: string, kind: string, meaning = 'm', advice = 'a') =>
  `| \`${code}\` | \`${kind}\` | ${meaning} | ${advice} |`;

test('docs/errors.md explains exactly the error codes of the program, each with its kind', async () => {
  assert.deepEqual(differences(await readFile(page, 'utf8'), errorKinds), []);
});

test('docs/errors.md explains every error kind in use', async () => {
  const text = await readFile(page, 'utf8');
  for (const kind of new Set(Object.values(errorKinds)))
    assert.match(text, new RegExp(`^\\| \`${kind}\` \\|`, 'm'));
});

test('a page with the same codes has no differences', () => {
  assert.deepEqual(
    differences(`# Errors\n\n${row('A', 'Bug')}\n${row('B_C', 'Failed')}\n`, { A: 'Bug', B_C: 'Failed' }),
    [],
  );
});

test('a missing, an additional, a duplicate and a wrong row are each reported', () => {
  assert.deepEqual(differences('', { A: 'Bug' }), ['A is not explained']);
  assert.deepEqual(differences(row('A', 'Bug'), {}), ['A is explained but not in use']);
  assert.deepEqual(differences(`${row('A', 'Bug')}\n${row('A', 'Bug')}`, { A: 'Bug' }), [
    'A is explained twice',
  ]);
  assert.deepEqual(differences(row('A', 'Bug'), { A: 'Failed' }), ['A is of kind Failed, not Bug']);
  assert.deepEqual(differences(row('A', 'Bug', '', ''), { A: 'Bug' }), [
    'A has no meaning',
    'A has no advice',
  ]);
});

test('rows of other tables do not count as error codes', () => {
  assert.deepEqual(
    rowsOf('| code | kind | meaning | what to do |\n| --- | --- | --- | --- |\n| `NotFound` | a | b |'),
    [],
  );
});
