import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ProblemReporter, problemAt } from './problems.ts';

const problem = (path: string, message: string) => problemAt({ source: 'file', path }, { message });

function createHarness() {
  const reported: string[] = [];
  const board = new ProblemReporter(
    ({ path, message }) => reported.push(`${path} ${message}`),
    (path) => reported.push(`${path} mended`),
  );
  return { board, told: reported };
}

test('reports each problem once, again when it changes, and once when it is resolved', () => {
  const { board, told } = createHarness();
  for (const message of ['a', 'a', 'b', 'b']) board.replace([problem('/x', message)]);
  board.replace([]);
  board.replace([]);
  assert.deepEqual(told, ['/x a', '/x b', '/x mended']);
});

test('reports a file as resolved when its last problem is resolved', () => {
  const { board, told } = createHarness();
  board.replace([problem('/x', 'a'), problem('/x', 'b'), problem('/y', 'c')]);
  board.replace([problem('/x', 'b')]);
  board.replace([]);
  assert.deepEqual(told, ['/x a', '/x b', '/y c', '/y mended', '/x mended']);
});

test('does not report a file as resolved when one problem replaces another', () => {
  const { board, told } = createHarness();
  board.replace([problem('/x', 'a')]);
  board.replace([], [problem('/x', 'b')]);
  board.replace([problem('/x', 'b')], [problem('/x', 'b')]);
  assert.deepEqual(told, ['/x a', '/x b']);
});
