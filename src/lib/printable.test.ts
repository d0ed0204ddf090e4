import assert from 'node:assert/strict';
import { test } from 'node:test';
import { printable, printableLines } from './printable.ts';

test('escapes control characters of terminals', () => {
  const text = '\x1b]0;owned\x07\x1b[31mred\u202e\u2028\tä\r\n';
  assert.equal(printable(text), '\\u001b]0;owned\\u0007\\u001b[31mred\\u202e\\u2028 ä\\u000d\\n');
  assert.equal(printableLines('one\ntwo\x9b'), 'one\ntwo\\u009b');
});
