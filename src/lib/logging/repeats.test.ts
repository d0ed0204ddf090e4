import assert from 'node:assert/strict';
import { it } from 'node:test';
import { instant } from '../clock.ts';
import type { LogRecord } from './format.ts';
import { Repeats } from './repeats.ts';

const record = (parts: Partial<LogRecord> = {}): LogRecord => ({
  severity: 'error',
  level: 0,
  time: instant(0),
  caller: { path: 'a.ts', line: 1 },
  message: 'Cannot do it',
  error: { err: 'too early' },
  fields: { pod: 'a' },
  ...parts,
});

/** The numbers of those that were told, said once every so often. */
function told(repeats: Repeats, { count, everyMs }: { readonly count: number; readonly everyMs: number }) {
  return Array.from({ length: count }, (_, index) => index + 1).filter(
    (number) => repeats.pass(record(), number * everyMs) !== undefined,
  );
}

it('complaints that are the same are told ever more rarely, with their number', () => {
  const repeats = new Repeats();
  assert.deepEqual(told(repeats, { count: 100, everyMs: 1_000 }), [1, 2, 3, 4, 5, 6, 7, 8, 16, 32, 64]);
  for (let number = 101; number < 128; number++) assert.equal(repeats.pass(record(), 101_000), undefined);
  assert.deepEqual(repeats.pass(record(), 101_000)?.fields, { pod: 'a', times: 128 });
});

it('a complaint that goes on is told every ten minutes', () => {
  const numbers = told(new Repeats(), { count: 3_600, everyMs: 1_000 });
  const late = numbers.filter((number) => number > 600);
  assert.ok(late.length >= 5 && late.length <= 10, late.join());
  assert.ok(numbers.length < 25);
});

it('after five quiet minutes a complaint is a new one', () => {
  const repeats = new Repeats();
  told(repeats, { count: 10, everyMs: 1_000 });
  assert.equal(repeats.pass(record(), 11_000), undefined);
  assert.deepEqual(repeats.pass(record(), 311_000), record());
});

it('what differs in anything is told each time, and so is all that is no complaint', () => {
  const repeats = new Repeats();
  for (let number = 0; number < 1_000; number++) {
    const others: readonly LogRecord[] = [
      record({ message: `Cannot do ${number}` }),
      record({ fields: { pod: `${number}` } }),
      record({ error: { err: `${number}` } }),
      record({ severity: 'info' }),
    ];
    for (const other of others) assert.equal(repeats.pass(other, 0), other);
  }
});
