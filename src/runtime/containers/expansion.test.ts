import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { ExpansionBudget, expandStrictly, expand as expandWithin } from './expansion.ts';

const values = new Map([
  ['A', 'a value'],
  ['B', '$(A)'],
  ['EMPTY', ''],
  ['', 'nameless'],
]);
const lookup = (name: string) => values.get(name);
const expand = (text: string, value: typeof lookup) => expandWithin(text, value, new ExpansionBudget());

const rows: readonly [string, string][] = [
  ['', ''],
  ['plain', 'plain'],
  ['$(A)', 'a value'],
  ['x$(A)y$(A)', 'xa valueya value'],
  ['$(B)', '$(A)'],
  ['$(EMPTY)', ''],
  ['$()', 'nameless'],
  ['$(MISSING)', '$(MISSING)'],
  ['$$(A)', '$(A)'],
  ['$$$(A)', '$a value'],
  ['$$$$(A)', '$$(A)'],
  ['$', '$'],
  ['$$', '$'],
  ['$A', '$A'],
  ['$(A', '$(A'],
  ['$(', '$('],
  ['$($(A)', '$($(A)'],
  ['$(A)$(B', 'a value$(B'],
  ['$(a$$b', '$(a$b'],
  ['$x$(A)', '$xa value'],
  ['é$(A)é', 'éa valueé'],
  ['a\n$(A)\n', 'a\na value\n'],
];
for (const [text, expected] of rows) {
  test(`expansion of ${JSON.stringify(text)} is ${JSON.stringify(expected)}`, () =>
    assert.equal(expand(text, lookup), expected));
}

test('expansion leaves a text without dollar signs unchanged', () => {
  fc.assert(
    fc.property(fc.string(), (text) => {
      const plain = text.replaceAll('$', '');
      assert.equal(
        expand(plain, () => 'x'),
        plain,
      );
    }),
  );
});

test('a text in which every dollar sign is doubled expands to the text with single dollar signs', () => {
  fc.assert(
    fc.property(fc.string(), (text) => {
      assert.equal(
        expand(text.replaceAll('$', '$$$$'), () => 'x'),
        text,
      );
    }),
  );
});

test('a text with many unclosed "$(" is expanded in linear time', () => {
  const text = '$('.repeat(500_000);
  assert.equal(
    expand(text, () => 'x'),
    text,
  );
});

test('expandStrictly names all missing or empty variables in its error', () => {
  assert.equal(expandStrictly('logs/$(A)', lookup, new ExpansionBudget()), 'logs/a value');
  assert.throws(() => expandStrictly('$(Z)/$(EMPTY)/$(C)/$(Z)', lookup, new ExpansionBudget()), {
    code: 'CONTAINER_CONFIG',
    message: 'missing value for C, EMPTY, Z',
  });
});

test('rejects a long value with many references before building the expanded text', () => {
  let lookups = 0;
  const long = () => {
    lookups++;
    return 'x'.repeat(1_000);
  };
  const budget = new ExpansionBudget(10_000);
  assert.equal(expandWithin('$(A)'.repeat(6), long, budget).length, 6_000);
  assert.throws(() => expandWithin('$(A)'.repeat(1_000), long, budget), { code: 'CONTAINER_CONFIG' });
  assert.equal(lookups, 6 + 5);
});
