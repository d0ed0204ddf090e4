import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { KubelingError } from '../../lib/index.ts';
import { readEnvFile } from './env-file.ts';

const found: readonly [string, string | undefined][] = [
  ["KEY='value'", 'value'],
  ["KEY='value'\n", 'value'],
  ["KEY='value'\r\n", 'value'],
  ["  KEY='value' # why", 'value'],
  ["# note\n\n \t\nOTHER='x'\nKEY='v=1 # $X \"q\"'\n", 'v=1 # $X "q"'],
  ["KEY='two\nlines'\nOTHER='x'", 'two\nlines'],
  ["KEY=''", ''],
  ["KEY= 'value'\n", ''],
  ["KEY='first'\nKEY='second'", 'first'],
  ["OTHER='KEY='", undefined],
  ["KEY='value'\nnonsense", 'value'],
  ['', undefined],
];
for (const [text, expected] of found) {
  test(`${JSON.stringify(text)} has KEY as ${JSON.stringify(expected)}`, () =>
    assert.equal(readEnvFile(text, 'KEY'), expected));
}

for (const text of [
  'KEY',
  "KEY ='v'",
  'KEY=v',
  'KEY="v"',
  "KEY='v",
  "='v'",
  "KEY='v'x",
  'KEY=',
  "nonsense\nKEY='v'",
]) {
  test(`${JSON.stringify(text)} is refused`, () => {
    assert.throws(() => readEnvFile(text, 'KEY'), {
      code: 'CONTAINER_CONFIG',
      message: "couldn't parse env file",
    });
  });
}

test('any text is read or refused, and nothing else happens', () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom('K', '=', "'", '\n', ' ', '#', 'x') }), (text) => {
      try {
        readEnvFile(text, 'K');
      } catch (error) {
        assert.ok(error instanceof KubelingError);
      }
    }),
  );
});
