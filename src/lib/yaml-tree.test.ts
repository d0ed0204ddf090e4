import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  isPlainYamlText,
  readYaml,
  readYamlDocuments,
  resolvePlainScalar,
  type YamlTree,
  yamlToJs,
} from './yaml-tree.ts';

async function js(text: string): Promise<unknown> {
  const { tree, problems } = await readYaml(text);
  assert.deepEqual(problems, []);
  return tree === undefined ? undefined : yamlToJs(tree);
}

function child(tree: YamlTree | undefined, key: string): YamlTree | undefined {
  return tree?.kind === 'map' ? tree.entries.find((entry) => entry.key === key)?.value : undefined;
}

test('plain scalars have the meaning that Kubernetes gives them', () => {
  const cases: readonly (readonly [string, unknown])[] = [
    ['yes', true],
    ['On', true],
    ['y', true],
    ['n', false],
    ['OFF', false],
    ['yEs', 'yEs'],
    ['~', null],
    ['', null],
    ['Null', null],
    ['0644', 420],
    ['0o17', 15],
    ['0x1F', 31],
    ['0b101', 5],
    ['-0b101', -5],
    ['08', 8],
    ['0', 0],
    ['1_000', 1000],
    ['+5', 5],
    ['-017', -15],
    ['1.5', 1.5],
    ['.5', 0.5],
    ['1.', 1],
    ['1e3', 1000],
    ['9223372036854775807', 9223372036854775807n],
    ['18446744073709551615', 18446744073709551615n],
    ['18446744073709551616', 2 ** 64],
    ['.inf', Number.POSITIVE_INFINITY],
    ['-.INF', Number.NEGATIVE_INFINITY],
    ['12:30', '12:30'],
    ['2026-01-01', '2026-01-01'],
    ['1.2.3', '1.2.3'],
    ['10Mi', '10Mi'],
    ['1m0s', '1m0s'],
    ['-', '-'],
    ['.', '.'],
    ['=', '='],
  ];
  for (const [text, value] of cases) assert.equal(resolvePlainScalar(text), value, text);
  assert.ok(Number.isNaN(resolvePlainScalar('.nan')));
  assert.equal(isPlainYamlText('10Mi'), true);
  assert.equal(isPlainYamlText('no'), false);
});

test('quotes and tags override the meaning of plain scalars', async () => {
  assert.deepEqual(await js('a: "yes"\nb: \'1\'\nc: !!str 1\nd: !!int "7"\ne: |\n  no\n'), {
    a: 'yes',
    b: '1',
    c: '1',
    d: 7,
    e: 'no\n',
  });
});

test('reads JSON, also with tabs', async () => {
  assert.deepEqual(await js('{\n\t"a": 1,\n\t"b": [\n\t\t"x", true, null\n\t]\n}\n'), {
    a: 1,
    b: ['x', true, null],
  });
});

test('keys are strings, also when they look like numbers', async () => {
  assert.deepEqual(await js('1: a\nyes: b\n"no": c\n'), { 1: 'a', true: 'b', no: 'c' });
});

test('replaces aliases, and merge keys do not override explicit keys', async () => {
  const text =
    'base: &base {a: 1, b: 2}\none: {<<: *base, b: 3}\nmany: {<<: [{c: 4}, *base], a: 5}\nsame: *base\n';
  assert.deepEqual(await js(text), {
    base: { a: 1, b: 2 },
    one: { b: 3, a: 1 },
    many: { a: 5, c: 4, b: 2 },
    same: { a: 1, b: 2 },
  });
});

test('every node of the tree has its line and column', async () => {
  const { tree } = await readYaml('# first\na: 1\nb:\n  - x\n  - z: 2\n');
  const b = child(tree, 'b');
  assert.ok(tree?.kind === 'map' && b?.kind === 'list');
  assert.deepEqual(tree.entries[1]?.at, { line: 3, column: 1 });
  assert.deepEqual(b.items[0]?.at, { line: 4, column: 5 });
  assert.deepEqual(child(b.items[1], 'z')?.at, { line: 5, column: 8 });
});

test('a duplicate key occurs twice in the tree', async () => {
  const { tree } = await readYaml('a: 1\nb: 2\na: 3\n');
  assert.ok(tree?.kind === 'map');
  assert.deepEqual(
    tree.entries.map((entry) => [entry.key, entry.at.line]),
    [
      ['a', 1],
      ['b', 2],
      ['a', 3],
    ],
  );
});

test('reports an empty text and a second document', async () => {
  for (const text of ['', '\n', '# only a comment\n', '---\n', '---\n# x\n']) {
    const read = await readYaml(text);
    assert.deepEqual(
      [read.tree, read.second, read.problems],
      [undefined, undefined, []],
      JSON.stringify(text),
    );
  }
  assert.equal((await readYaml('---\na: 1\n---\n')).second, undefined);
  assert.deepEqual((await readYaml('a: 1\n---\nb: 2\n')).second, { line: 3, column: 1 });
});

test('reports the position of the error in an invalid text', async () => {
  for (const [text, line] of [
    ['a: "x\n', 2],
    ['a: 1\n b: 2\n', 1],
    ['a: [1, 2\n', 2],
    ['a: *nowhere\n', 1],
    ['<<: 5\n', 1],
    ['{a: 1}: b\n', 1],
    ['\ta: 1\n', 1],
  ] as const) {
    const { tree, problems } = await readYaml(text);
    assert.equal(tree, undefined, text);
    assert.equal(problems[0]?.line, line, `${text}: ${JSON.stringify(problems)}`);
    assert.notEqual(problems[0]?.message, '');
  }
});

test('rejects a text that would expand without bound', async () => {
  const rows = ['l0: &l0 [x, x, x, x, x, x, x, x, x]'];
  for (let i = 1; i < 9; i++)
    rows.push(
      `l${i}: &l${i} [${Array(9)
        .fill(`*l${i - 1}`)
        .join(', ')}]`,
    );
  const bomb = await readYaml(rows.join('\n'));
  assert.match(bomb.problems[0]?.message ?? '', /too large/);
  const deep = await readYaml('['.repeat(500) + ']'.repeat(500));
  assert.equal(deep.tree, undefined);
  const itself = await readYaml('a: &a [*a]\n');
  assert.equal(itself.tree, undefined);
});

test('never throws for any text', async () => {
  await fc.assert(
    fc.asyncProperty(fc.string({ unit: 'grapheme' }), async (text) => void (await readYaml(text))),
  );
});

test('reads any JSON text as the same value as JSON.parse', async () => {
  await fc.assert(
    fc.asyncProperty(fc.dictionary(fc.string(), fc.jsonValue(), { minKeys: 1 }), async (value) => {
      const text = JSON.stringify(value, null, '\t');
      assert.deepEqual(await js(text), JSON.parse(text));
    }),
  );
});

test('reads each document separately, so that an invalid one does not affect the others', async () => {
  const documents = await readYamlDocuments('a: 1\n---\n# nothing\n---\nb: [\n---\nc: 3\n');
  assert.deepEqual(
    documents.map(({ tree, at, problems }) => [tree && yamlToJs(tree), at.line, problems.length > 0]),
    [
      [{ a: 1 }, 1, false],
      [undefined, 5, true],
      [{ c: 3 }, 7, false],
    ],
  );
  assert.deepEqual(await readYamlDocuments('---\n# nothing\n---\n'), []);
});

test('reports indentation with tabs once', async () => {
  const text = 'kind: Pod\nmetadata:\n\tname: a\nspec:\n\tcontainers:\n\t- name: a\n\t  image: b\n';
  const { problems } = await readYaml(text);
  assert.deepEqual(problems, [{ message: 'Tabs are not allowed as indentation', line: 3, column: 1 }]);
});
