import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatTimeout, parseTimeout } from './timeout.ts';

test('a time-out is told in at most eight digits, rounded up', () => {
  for (const [ms, header] of [
    [0, '1m'],
    [0.2, '1m'],
    [1_500, '1500m'],
    [99_999_999, '99999999m'],
    [100_000_000, '100000S'],
    [100_000_001, '100001S'],
    [1e15, '99999999S'],
  ] as const) {
    assert.equal(formatTimeout(ms), header);
  }
});

test('every unit is understood', () => {
  for (const [header, ms] of [
    ['2H', 7_200_000],
    ['3M', 180_000],
    ['4S', 4_000],
    ['5m', 5],
    ['6000u', 6],
    ['7000000n', 7],
  ] as const) {
    assert.equal(parseTimeout(header), ms);
  }
});

test('what is no time-out is none', () => {
  for (const header of [undefined, '', '5', 'S', '5s', '-5S', '123456789S', '1.5S', ['5S', '6S']]) {
    assert.equal(parseTimeout(header), undefined);
  }
});
