import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { KubelingError } from './errors.ts';
import {
  addQuantities,
  compareQuantities,
  formatQuantity,
  milliQuantity,
  parseQuantity,
  type Quantity,
  quantityMilliValue,
  quantityOf,
  quantityValue,
  subtractQuantities,
  tryParseQuantity,
} from './quantity.ts';

const billion = 1_000_000_000n;

test('reads a quantity with every suffix', () => {
  const cases: readonly (readonly [string, bigint])[] = [
    ['0', 0n],
    ['-0', 0n],
    ['1n', 1n],
    ['1u', 1_000n],
    ['100m', 100_000_000n],
    ['1', billion],
    ['+1', billion],
    ['-1', -billion],
    ['1.', billion],
    ['.5', billion / 2n],
    ['007', 7n * billion],
    ['1k', 1_000n * billion],
    ['1M', 10n ** 15n],
    ['1G', 10n ** 18n],
    ['1T', 10n ** 21n],
    ['1P', 10n ** 24n],
    ['1E', 10n ** 27n],
    ['1Ki', 1024n * billion],
    ['1Mi', 2n ** 20n * billion],
    ['1Gi', 2n ** 30n * billion],
    ['1Ti', 2n ** 40n * billion],
    ['1Pi', 2n ** 50n * billion],
    ['1Ei', 2n ** 60n * billion],
    ['1.5Gi', 3n * 2n ** 29n * billion],
    ['12e6', 12n * 10n ** 15n],
    ['12E6', 12n * 10n ** 15n],
    ['1e+3', 1_000n * billion],
    ['1e-3', 1_000_000n],
    ['1.25e2', 125n * billion],
  ];
  for (const [text, nanos] of cases) assert.equal(parseQuantity(text).nanos, nanos, text);
});

test('rounds fractions below a billionth away from zero', () => {
  assert.equal(parseQuantity('0.1n').nanos, 1n);
  assert.equal(parseQuantity('-0.1n').nanos, -1n);
  assert.equal(parseQuantity('1e-99999').nanos, 1n);
  assert.equal(parseQuantity('0e-99999').nanos, 0n);
  assert.equal(parseQuantity('1.0000000001').nanos, billion + 1n);
});

test('caps quantities with a binary suffix at the largest 64-bit integer', () => {
  assert.equal(quantityValue(parseQuantity('9Ei')), 2n ** 63n - 1n);
  assert.equal(quantityValue(parseQuantity('-9Ei')), -(2n ** 63n - 1n));
  assert.equal(quantityValue(parseQuantity('7Ei')), 7n * 2n ** 60n);
});

test('rejects text that is not a quantity', () => {
  const wrong = [
    '',
    ' ',
    '.',
    '-',
    '+',
    'm',
    'Ki',
    '1ki',
    '1K',
    '1mi',
    '1 Gi',
    ' 1',
    '1 ',
    '0.1mi',
    '1i',
    '1.2.3',
  ];
  wrong.push('1e', '1e+', '1Ge3', '--1', '1,5', '0x10', '1_000', 'NaN', '١', '1e99999', '1'.repeat(300));
  for (const text of wrong) assert.equal(tryParseQuantity(text), undefined, text);
  assert.throws(
    () => parseQuantity('ten'),
    (error) =>
      error instanceof KubelingError && error.code === 'QUANTITY_INVALID' && /"ten"/.test(error.message),
  );
});

test('formats a quantity in canonical form', () => {
  const cases: readonly (readonly [string, string])[] = [
    ['1.5', '1500m'],
    ['1.5Gi', '1536Mi'],
    ['1024Mi', '1Gi'],
    ['1000m', '1'],
    ['1000k', '1M'],
    ['0.5Ki', '512'],
    ['1023', '1023'],
    ['100Mi', '100Mi'],
    ['1.0001Ki', '1024102400u'],
    ['0.0001Ki', '102400u'],
    ['-1536Mi', '-1536Mi'],
    ['1e3', '1e3'],
    ['10e2', '1e3'],
    ['1e1', '10'],
    ['1e-3', '1e-3'],
    ['1e21', '1e21'],
    ['1000E', '1000E'],
    ['0.000000001', '1n'],
    ['0Mi', '0'],
  ];
  for (const [text, canonical] of cases) assert.equal(formatQuantity(parseQuantity(text)), canonical, text);
});

test('rounds whole and milli values away from zero', () => {
  assert.equal(quantityValue(parseQuantity('1500m')), 2n);
  assert.equal(quantityValue(parseQuantity('-1500m')), -2n);
  assert.equal(quantityMilliValue(parseQuantity('0.1m')), 1n);
  assert.equal(quantityMilliValue(parseQuantity('2')), 2000n);
});

test('a sum has the format of the first operand that is not zero', () => {
  const sum = addQuantities(quantityOf(0), parseQuantity('1Gi'));
  assert.equal(formatQuantity(sum), '1Gi');
  assert.equal(formatQuantity(addQuantities(parseQuantity('1'), parseQuantity('500m'))), '1500m');
  assert.equal(formatQuantity(subtractQuantities(parseQuantity('1Gi'), parseQuantity('512Mi'))), '512Mi');
  assert.equal(compareQuantities(parseQuantity('1Ki'), parseQuantity('1k')), 1);
  assert.equal(compareQuantities(parseQuantity('1'), parseQuantity('1000m')), 0);
  assert.equal(compareQuantities(milliQuantity(1), quantityOf(1)), -1);
});

const format = fc.constantFrom<Quantity['format']>('DecimalSI', 'BinarySI', 'DecimalExponent');
const limit = (2n ** 63n - 1n) * billion;

test('parsing a formatted quantity returns the same quantity', () => {
  fc.assert(
    fc.property(fc.bigInt({ min: -limit, max: limit }), format, (nanos, kind) => {
      assert.equal(parseQuantity(formatQuantity({ nanos, format: kind })).nanos, nanos);
    }),
  );
});

test('formatting a formatted quantity again changes nothing', () => {
  const number = fc.stringMatching(/^-?[0-9]{1,9}(\.[0-9]{1,4})?$/);
  const suffix = fc.constantFrom('', 'n', 'u', 'm', 'k', 'M', 'G', 'T', 'Ki', 'Mi', 'Gi', 'e3', 'e-3', 'E6');
  fc.assert(
    fc.property(number, suffix, (digits, unit) => {
      const once = formatQuantity(parseQuantity(`${digits}${unit}`));
      assert.equal(formatQuantity(parseQuantity(once)), once);
    }),
  );
});

test('adding a quantity and subtracting it again returns the original quantity', () => {
  const any = fc
    .bigInt({ min: -limit, max: limit })
    .map((nanos): Quantity => ({ nanos, format: 'DecimalSI' }));
  fc.assert(
    fc.property(any, any, (a, b) => {
      assert.equal(subtractQuantities(addQuantities(a, b), b).nanos, a.nanos);
      assert.ok(compareQuantities(a, b) + compareQuantities(b, a) === 0);
    }),
  );
});

test('parsing never throws for any text', () => {
  fc.assert(fc.property(fc.string(), (text) => void tryParseQuantity(text)));
});
