import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { KubelingError } from './errors.ts';
import {
  durationMs,
  durationNanos,
  formatDuration,
  formatDurationMs,
  parseDurationMs,
  tryParseDuration,
  tryParseDurationMs,
} from './go-duration.ts';

const second = 1_000_000_000n;

test('reads a duration with any unit exactly', () => {
  const cases: readonly (readonly [string, bigint])[] = [
    ['0', 0n],
    ['+0', 0n],
    ['-0', 0n],
    ['0s', 0n],
    ['1ns', 1n],
    ['1us', 1_000n],
    ['1µs', 1_000n],
    ['1μs', 1_000n],
    ['1ms', 1_000_000n],
    ['1s', second],
    ['1m', 60n * second],
    ['1h', 3600n * second],
    ['-1h', -3600n * second],
    ['+5s', 5n * second],
    ['1h30m', 5400n * second],
    ['1.5h', 5400n * second],
    ['.5s', second / 2n],
    ['5.s', 5n * second],
    ['1m0s', 60n * second],
    ['2h45m30.25s', 9_930_250_000_000n],
    ['1s1s', 2n * second],
    ['0.3333333333333333333h', 1_199_999_999_999n],
    ['9223372036854775807ns', 2n ** 63n - 1n],
    ['-9223372036854775808ns', -(2n ** 63n)],
  ];
  for (const [text, nanos] of cases) assert.equal(tryParseDuration(text), nanos, text);
});

test('rejects text that is not a duration', () => {
  const wrong = [
    '',
    '3',
    '-',
    's',
    '.',
    '-.',
    '.s',
    '+.s',
    '1d',
    '1 s',
    '1s ',
    '1S',
    '1.2.3s',
    '1e3s',
    'NaNs',
    '١s',
  ];
  wrong.push('9223372036854775808ns', '3000000h', '-9223372036854775809ns', `${'1'.repeat(200)}s`);
  for (const text of wrong) assert.equal(tryParseDuration(text), undefined, text);
  assert.throws(
    () => parseDurationMs('60'),
    (error) =>
      error instanceof KubelingError && error.code === 'DURATION_INVALID' && /"60"/.test(error.message),
  );
});

test('formats durations like Kubernetes', () => {
  const cases: readonly (readonly [bigint, string])[] = [
    [0n, '0s'],
    [1n, '1ns'],
    [1_100n, '1.1µs'],
    [2_200_000n, '2.2ms'],
    [100_000_000n, '100ms'],
    [3_300_000_000n, '3.3s'],
    [20n * second, '20s'],
    [60n * second, '1m0s'],
    [4n * 3600n * second, '4h0m0s'],
    [4n * 60n * second + 5n * second + 1n, '4m5.000000001s'],
    [5n * 3600n * second + 6n * 60n * second + 7_001_000_000n, '5h6m7.001s'],
    [-90n * second, '-1m30s'],
    [2n ** 63n - 1n, '2562047h47m16.854775807s'],
    [-(2n ** 63n), '-2562047h47m16.854775808s'],
  ];
  for (const [nanos, text] of cases) assert.equal(formatDuration(nanos), text);
});

test('converts between durations and fractions of milliseconds in both directions', () => {
  assert.equal(tryParseDurationMs('1500us'), 1.5);
  assert.equal(formatDurationMs(1.5), '1.5ms');
  assert.equal(parseDurationMs('1m30s'), 90_000);
  assert.equal(formatDurationMs(-90_000), '-1m30s');
  assert.equal(durationNanos(0.000001), 1n);
  assert.equal(durationMs(8760n * 3600n * second), 31_536_000_000);
});

test('parsing a formatted duration returns the same duration', () => {
  fc.assert(
    fc.property(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), (nanos) => {
      assert.equal(tryParseDuration(formatDuration(nanos)), nanos);
    }),
  );
});

test('any duration below ninety days converts to milliseconds and back without losing a nanosecond', () => {
  const limit = 90n * 24n * 3600n * second;
  fc.assert(
    fc.property(fc.bigInt({ min: -limit, max: limit }), (nanos) => {
      assert.equal(durationNanos(durationMs(nanos)), nanos);
    }),
  );
});

test('parsing never throws for any text', () => {
  fc.assert(fc.property(fc.string(), (text) => void tryParseDuration(text)));
  fc.assert(
    fc.property(fc.stringMatching(/^[-+]?[0-9.]{0,6}[nuµmsh]{0,3}$/), (text) => void tryParseDuration(text)),
  );
});

test('rejects a long text of digits in linear time', () => {
  const before = process.threadCpuUsage();
  assert.equal(tryParseDuration(`${'11s'.repeat(42)}x`), undefined);
  const { user, system } = process.threadCpuUsage(before);
  assert.ok(user + system < 1e6, `${user + system} µs`);
});
