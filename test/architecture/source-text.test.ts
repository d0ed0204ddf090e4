import assert from 'node:assert/strict';
import { test } from 'node:test';
import { codeOnly, importsOf } from './source-text.ts';

test('finds every form of import', () => {
  const source = `
    import a, { b, type C } from './named.ts';
    import * as all from "./all.ts";
    import type { T } from './types.ts';
    import { type U } from './inline.ts';
    import {
      long,
    } from './long.ts';
    import './effect.ts';
    export { x } from './out.ts';
    export * from './all-out.ts';
    export type { Y } from './type-out.ts';
    const later = await import('./later.ts');
    import type from './default-called-type.ts';
  `;
  const found = importsOf(source);
  assert.deepEqual(
    found
      .filter(({ typeOnly }) => !typeOnly)
      .map(({ from }) => from)
      .sort(),
    [
      './all-out.ts',
      './all.ts',
      './default-called-type.ts',
      './effect.ts',
      './inline.ts',
      './later.ts',
      './long.ts',
      './named.ts',
      './out.ts',
    ],
  );
  assert.deepEqual(
    found.filter(({ typeOnly }) => typeOnly).map(({ from }) => from),
    ['./types.ts', './type-out.ts'],
  );
});

test('ignores text that only resembles an import', () => {
  const source = [
    "// import { a } from './comment.ts';",
    "/* import './block.ts'; */",
    `const text = "import { b } from './string.ts'";`,
    "const template = `import './template.ts' \u0024{'inside'}`;",
    "const pattern = /import '.\\/pattern.ts'/;",
    'export const from = 1;',
    "const x = { import: 'y' };",
  ].join('\n');
  assert.deepEqual(importsOf(source), []);
});

test('treats the expressions in a template literal as code, and its text as text', () => {
  const code = codeOnly('`a setTimeout \u0024{ run({ b: `c \u0024{Date.now()} d` }) } e`; setInterval');
  assert.match(code, /Date\.now/);
  assert.match(code, /setInterval/);
  assert.doesNotMatch(code, /setTimeout/);
});

test('distinguishes a division from a regular expression', () => {
  assert.match(codeOnly('const a = b / c; Date.now(); d / e'), /Date\.now/);
  assert.doesNotMatch(codeOnly('return /Date.now/.test(x)'), /Date\.now/);
  assert.match(codeOnly('x.replace(/[/"]/g, y); Date.now()'), /Date\.now/);
});

test('keeps the position of every character', () => {
  const source = "const a = '😀'; // y\nb(`z`, /w/);\n";
  const code = codeOnly(source);
  assert.equal(code.length, source.length);
  assert.equal(code.split('\n').length, source.split('\n').length);
});
