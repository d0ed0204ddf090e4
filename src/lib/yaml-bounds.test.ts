import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import fc from 'fast-check';
import * as yaml from 'yaml';
import {
  findExceededLimit,
  maxDepth,
  maxDocumentCharacters,
  maxLexemes,
  maxLines,
  maxQuotedCharacters,
} from './yaml-bounds.ts';
import { readYaml, readYamlDocuments } from './yaml-tree.ts';
import { YieldingCounter } from './yielding-counter.ts';

const heavy: readonly (readonly [string, string, RegExp, readonly [number, number] | undefined])[] = [
  ['a list of a million lines', '- a: b\n'.repeat(400_000), /words and marks/, undefined],
  ['a long map', 'key: value\n'.repeat(40_000), /words and marks/, undefined],
  ['a long list on one line', `[${'a,'.repeat(maxLexemes)}]`, /words and marks/, [1, maxLexemes - 2]],
  ['a large JSON object', JSON.stringify(Array(maxLexemes).fill({})), /words and marks/, undefined],
  ['many documents', '---\na: b\n'.repeat(20_000), /words and marks/, undefined],
  ['many empty documents', '---\n'.repeat(20_000), /words and marks/, undefined],
  ['many anchors', '- &a x\n- *a\n'.repeat(20_000), /words and marks/, undefined],
  ['brackets in brackets', '['.repeat(200_000), /100 levels deep/, [1, maxDepth + 1]],
  ['objects in objects', '{"a":'.repeat(1_000), /100 levels deep/, [1, maxDepth * 5 + 1]],
  [
    'indentation',
    Array.from({ length: 1_000 }, (_, n) => `${' '.repeat(n)}a:`).join('\n'),
    /deep/,
    undefined,
  ],
  ['lists in lists on one line', '- '.repeat(1_000), /100 levels deep/, [1, maxDepth * 2 + 1]],
  ['keys of keys', '? '.repeat(1_000), /100 levels deep/, undefined],
  ['maps in maps on one line', 'a: '.repeat(1_000), /100 levels deep/, undefined],
  ['brackets below indentation', `a:\n  b: ${'['.repeat(maxDepth)}`, /100 levels deep/, undefined],
  ['much text in quotes', `a: "${'x'.repeat(maxQuotedCharacters)}"`, /1048576 characters in quotes/, [1, 4]],
  ['a long document', `a: ${'x '.repeat(maxDocumentCharacters / 2)}`, /3145728 characters/, [1, 1]],
  [
    'a long document behind others',
    `a: b\n---\n${'x '.repeat(maxDocumentCharacters / 2)}`,
    /3145728/,
    [2, 1],
  ],
  ['a text of many lines', `a: |\n${'  x\n'.repeat(maxLines)}`, /50000 lines/, [maxLines + 1, 1]],
];

function watchParser(t: TestContext) {
  return t.mock.method(yaml.Parser.prototype, 'end').mock;
}

test('rejects a YAML text that is too expensive before it is parsed, with the position', async (t) => {
  const parser = watchParser(t);
  for (const [what, text, message, at] of heavy) {
    const { tree, problems } = await readYaml(text);
    assert.equal(tree, undefined, what);
    assert.equal(problems.length, 1, what);
    assert.match(problems[0]?.message ?? '', message, what);
    if (at !== undefined) assert.deepEqual([problems[0]?.line, problems[0]?.column], at, what);
    const documents = await readYamlDocuments(text);
    assert.deepEqual(
      [documents.length, documents[0]?.tree, documents[0]?.problems],
      [1, undefined, problems],
    );
  }
  assert.equal(parser.callCount(), 0);
});

test('reads a large YAML text that is cheap to parse', async (t) => {
  const parser = watchParser(t);
  const texts = [
    `a: |\n${'  {[- a: b, "c": []]}\n'.repeat(maxLines - 100)}`,
    `a: x${'[{" '.repeat(500_000)}`,
    `a: '${'['.repeat(maxQuotedCharacters - 10)}'`,
    `${'#[['.repeat(10_000)}\na: b\n`,
    'metadata:\n  name: a\nspec:\n  containers:\n  - name: b\n    args: [a, b]\n'.repeat(2_000),
    `${'['.repeat(maxDepth - 1)}${']'.repeat(maxDepth - 1)}`,
    `${'[a, {b: [c]}]\n---\n'.repeat(1_000)}`,
  ];
  for (const text of texts) {
    const { problems } = await readYaml(text);
    assert.deepEqual(problems, [], text.slice(0, 40));
  }
  assert.equal(parser.callCount(), texts.length);
});

test('counts the nesting depth of the content of a key, whatever its column', async () => {
  const levels = Array.from({ length: maxDepth / 2 + 1 }, (_, level) => `${' '.repeat(3 * level)}- a:\n`);
  const text = `${levels.join('')}${' '.repeat(3 * levels.length)}b`;
  assert.ok(readDepth(text) > maxDepth);
  assert.notEqual(await excessOf(text), undefined);
});

test('the measured depth is at least the parsed depth', async () => {
  const level = fc.constantFrom('- ', '? ', 'a:\n', '-\n', '[', '{a: ', '&x ', '!t ');
  await fc.assert(
    fc.asyncProperty(
      fc.array(level, { minLength: 3 * maxDepth, maxLength: 4 * maxDepth }),
      async (levels) => {
        let text = '';
        let indent = 0;
        let flow = 0;
        for (const one of levels) {
          if (one.startsWith('[') || one.startsWith('{')) flow++;
          else if (flow > 0) continue;
          if (text.endsWith('\n')) text += ' '.repeat(indent);
          text += one;
          indent += 2;
        }
        if (readDepth(text) > maxDepth) assert.notEqual(await excessOf(text), undefined, text);
      },
    ),
  );
});

function excessOf(text: string) {
  return findExceededLimit(yaml, text, new YieldingCounter(2_000));
}

function readDepth(text: string): number {
  let most = 0;
  for (const document of yaml.parseAllDocuments(text, { schema: 'failsafe', logLevel: 'silent' }))
    yaml.visit(document as yaml.Document, {
      Collection: (_key, _node, path) => {
        most = Math.max(most, path.filter((node) => yaml.isCollection(node)).length + 1);
      },
    });
  return most;
}

test('resolves each of many aliases to the last node with its anchor', async () => {
  const { tree } = await readYaml(`[&a x, *a, &a y, *a, [&a z, *a], *a]`);
  assert.ok(tree?.kind === 'list');
  assert.deepEqual(
    tree.items.map((item) => (item.kind === 'scalar' ? item.value : item.kind)),
    ['x', 'x', true, true, 'list', 'z'],
  );
});

test('an error message quotes only a few words of the YAML text', async () => {
  for (const text of [`a: *${'x'.repeat(100_000)}`, `a: !<${'x'.repeat(100_000)}`]) {
    const { problems } = await readYaml(text);
    assert.ok(problems.every(({ message }) => message.length <= 300));
  }
});

test('restores the global stack trace limit after it has parsed an invalid YAML text', async () => {
  const before = Error.stackTraceLimit;
  await readYaml('a: [');
  assert.equal(Error.stackTraceLimit, before);
});

test('yields to the event loop while it parses the largest allowed text', async () => {
  let turns = 0;
  let isOver = false;
  const turn = () => {
    turns++;
    if (!isOver) setImmediate(turn);
  };
  setImmediate(turn);
  const { tree } = await readYaml(`[${'a,'.repeat(30_000)}]`);
  isOver = true;
  assert.ok(tree?.kind === 'list' && tree.items.length === 30_000);
  // The text has 90,000 lexemes, each read twice.
  assert.ok(turns >= 80, `${turns} turns`);
});

test('parses a small YAML text without yielding', async () => {
  await readYaml('a: b');
  let turns = 0;
  setImmediate(() => turns++);
  await readYaml('a: [b, c]');
  assert.equal(turns, 0);
});
