import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { headText, labelText, numberText, sampleText } from './instruments.ts';

test('formats numbers like the Prometheus client of Go', () => {
  const cases = [
    [0, '0'],
    [1, '1'],
    [-1.5, '-1.5'],
    [0.0001, '0.0001'],
    [0.00001, '1e-05'],
    [999999, '999999'],
    [1e6, '1e+06'],
    [1234567.5, '1.2345675e+06'],
    [1.7e9, '1.7e+09'],
    [1e100, '1e+100'],
    [0.03125, '0.03125'],
    [Number.POSITIVE_INFINITY, '+Inf'],
    [Number.NEGATIVE_INFINITY, '-Inf'],
    [Number.NaN, 'NaN'],
  ] as const;
  for (const [value, text] of cases) assert.equal(numberText(value), text);
});

test('parsing a formatted number returns the same number', () => {
  fc.assert(
    fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (value) => {
      assert.ok(Object.is(Number(numberText(value)), value));
    }),
  );
});

test('help texts and label values are escaped by their different rules', () => {
  assert.equal(
    headText({ name: 'a', help: 'one\ntwo \\ "three"', type: 'gauge' }),
    '# HELP a one\\ntwo \\\\ "three"\n# TYPE a gauge\n',
  );
  assert.equal(labelText(['x', 'y'], { y: 'a"b\\c\nd', x: '' }), 'x="",y="a\\"b\\\\c\\nd"');
});

test('samples have braces only with labels, and a timestamp only if given', () => {
  assert.equal(sampleText('a', '', 1), 'a 1\n');
  assert.equal(sampleText('a', 'x="1"', 2, 1700000000123.7), 'a{x="1"} 2 1700000000123\n');
});

test('different labels never produce the same text', () => {
  const pair = fc.tuple(fc.string(), fc.string());
  fc.assert(
    fc.property(pair, pair, ([a, b], [c, d]) => {
      const same = labelText(['x', 'y'], { x: a, y: b }) === labelText(['x', 'y'], { x: c, y: d });
      assert.equal(same, a === c && b === d);
    }),
  );
});
