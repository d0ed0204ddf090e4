import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  boolFlag,
  choiceFlag,
  durationFlag,
  intFlag,
  listFlag,
  mapFlag,
  multimapFlag,
  stringFlag,
} from './flag-kinds.ts';
import { formatFlagHelp, parseFlags } from './flags.ts';

const table = {
  'max-pods': { kind: intFlag(0, 1000), help: 'How many pods.', default: '110', group: 'Limits' },
  name: { kind: stringFlag, help: 'A name.', short: 'n' },
  quiet: { kind: boolFlag, help: 'Say less.', short: 'q' },
  all: { kind: boolFlag, help: 'Everything.', short: 'a' },
  v: { kind: intFlag(0), help: 'How much to say.', short: 'v' },
  wait: { kind: durationFlag, help: 'How long.', deprecated: 'use patience' },
  mode: { kind: choiceFlag(['fast', 'slow']), help: 'How.' },
  dns: { kind: listFlag(stringFlag), help: 'Servers.' },
  ports: { kind: listFlag(intFlag()), help: 'Ports.' },
  labels: { kind: mapFlag(stringFlag, { value: 'optional' }), help: 'Labels.' },
  gates: { kind: mapFlag(boolFlag), help: 'Gates.' },
  limits: { kind: mapFlag(stringFlag, { between: '<' }), help: 'Limits.' },
  option: { kind: mapFlag(stringFlag, { pairs: 'one' }), help: 'An option.' },
  header: { kind: multimapFlag({ between: ':' }), help: 'Headers.' },
};

function read(...argv: string[]) {
  return parseFlags(table, argv);
}

test('accepts --flag=value and --flag value', () => {
  assert.deepEqual(read('--max-pods=5').values, { 'max-pods': 5 });
  assert.deepEqual(read('--max-pods', '5').values, { 'max-pods': 5 });
  assert.deepEqual(read('--max_pods', '5').values, { 'max-pods': 5 });
  assert.deepEqual(read('--name=').values, { name: '' });
  assert.deepEqual(read('--name', '--quiet').values, { name: '--quiet' });
  assert.deepEqual(read('--name=a=b').values, { name: 'a=b' });
});

test('a boolean flag never uses the next argument as its value', () => {
  const parsed = read('--quiet', 'false');
  assert.deepEqual(parsed.values, { quiet: true });
  assert.deepEqual(parsed.positionals, ['false']);
  assert.deepEqual(read('--quiet=F').values, { quiet: false });
  assert.equal(read('--quiet=maybe').problems[0]?.message, 'must be true or false: current value is "maybe"');
});

test('short flags can be written as -n value, -n=value, -nvalue and combined', () => {
  assert.deepEqual(read('-v', '4').values, { v: 4 });
  assert.deepEqual(read('-v4').values, { v: 4 });
  assert.deepEqual(read('-v=4').values, { v: 4 });
  assert.deepEqual(read('--v=4').values, { v: 4 });
  assert.deepEqual(read('-qan', 'x').values, { quiet: true, all: true, name: 'x' });
  assert.deepEqual(read('-q=false').values, { quiet: false });
});

test('arguments after -- are positionals, and so is a single -', () => {
  assert.deepEqual(read('-q', '--', '--name', '-x').positionals, ['--name', '-x']);
  assert.deepEqual(read('-').positionals, ['-']);
});

test('a repeated flag uses its last value, except lists and maps, which accumulate', () => {
  assert.deepEqual(read('--name=a', '--name=b').values, { name: 'b' });
  assert.deepEqual(read('--dns=1.1.1.1,2.2.2.2', '--dns', '3.3.3.3').values, {
    dns: ['1.1.1.1', '2.2.2.2', '3.3.3.3'],
  });
  assert.deepEqual(read('--dns=').values, { dns: [] });
  assert.deepEqual(read('--dns="a,b",c""').values.dns, undefined);
  assert.deepEqual(read('--dns="a,""b",c').values.dns, ['a,"b', 'c']);
  assert.deepEqual(read('--dns=a,').values.dns, ['a', '']);
  assert.deepEqual(read('--labels=a=1,b', '--labels= c = 3 ').values.labels, { a: '1', b: '', c: '3' });
  assert.deepEqual(read('--gates=A=true,B=0').values.gates, { A: true, B: false });
  assert.deepEqual(read('--limits=memory.available<100Mi').values.limits, { 'memory.available': '100Mi' });
  assert.deepEqual(read('--option=a=1,2', '--option=b=3').values.option, { a: '1,2', b: '3' });
  assert.deepEqual(read('--header=a:1,b:2', '--header=a:3').values.header, { a: ['1', '3'], b: ['2'] });
});

test('reads numbers in the notations of Go: hexadecimal, octal and binary', () => {
  for (const [text, value] of [
    ['0x1F', 31],
    ['017', 15],
    ['0o17', 15],
    ['0b11', 3],
    ['+7', 7],
  ] as const) {
    assert.deepEqual(read(`--max-pods=${text}`).values, { 'max-pods': value }, text);
  }
  for (const text of ['08', '1.5', '', ' 1', '1e3', '1001', '-1', 'x']) {
    assert.equal(read(`--max-pods=${text}`).problems.length, 1, text);
  }
});

test('reports every problem with the name of its flag', () => {
  const parsed = read(
    '--max-pod=5',
    '--wait=soon',
    '--mode=fsat',
    '-z',
    '--labels',
    'x',
    '--gates=A',
    '--ports=a,1',
    '--name',
  );
  assert.deepEqual(parsed.problems, [
    { flag: '--max-pod', message: 'is not a known flag (did you mean --max-pods?)' },
    { flag: '--wait', message: 'must be a duration such as 300ms, 10s or 1h30m: current value is "soon"' },
    { flag: '--mode', message: 'must be one of fast, slow (did you mean fast?): current value is "fsat"' },
    { flag: '-z', message: 'is not a known flag' },
    { flag: '--gates', message: 'must be pairs of key=value: current value is "A"' },
    {
      flag: '--ports',
      message: 'must be a whole number from -9007199254740991 to 9007199254740991: current value is "a"',
    },
    { flag: '--name', message: 'needs a value: string' },
  ]);
});

test('suggests two dashes for a long flag with one dash', () => {
  assert.deepEqual(read('-max-pods=5').problems, [
    { flag: '-max-pods', message: 'is not a known flag (did you mean --max-pods?)' },
  ]);
});

test('rejects flags named like inherited properties of objects, such as --constructor', () => {
  for (const name of ['constructor', '__proto__', 'toString'])
    assert.equal(read(`--${name}=1`).problems.length, 1);
  assert.deepEqual(Object.keys(read('--labels=__proto__=1').values.labels ?? {}), ['__proto__']);
});

test('lists the used flags in order and once', () => {
  assert.deepEqual(read('-q', '--name=a', '--quiet').used, ['quiet', 'name']);
});

test('never throws for any command line', () => {
  const word = fc.oneof(
    fc.string(),
    fc.constantFrom(...Object.keys(table)).chain((name) => fc.string().map((value) => `--${name}=${value}`)),
    fc.constantFrom(...Object.keys(table)).map((name) => `--${name}`),
  );
  fc.assert(fc.property(fc.array(word), (argv) => void parseFlags(table, argv)));
});

test('the flag help has headings, defaults and deprecations', () => {
  const help = formatFlagHelp(table, 60);
  assert.match(help, /^Limits:\n {6}--max-pods int\n {10}How many pods\. \(default 110\)\n/);
  assert.match(help, /\n {2}-q, --quiet\n/);
  assert.match(help, /--wait duration\n {10}How long\. \[deprecated: use patience\]/);
  for (const line of help.split('\n')) assert.ok(line.length <= 60, line);
});
