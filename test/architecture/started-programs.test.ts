import assert from 'node:assert/strict';
import { test } from 'node:test';
import { codeOnly } from './source-text.ts';
import { sourcesOf, startedPrograms, startsIn } from './started-programs.ts';

test('the table of started programs matches the programs started in the source', () => {
  const inSource = sourcesOf().flatMap(([file, source]) => {
    const { programs, hasMeans } = startsIn(source);
    const named = programs.size === 0 && hasMeans ? [''] : [...programs];
    return named.map((program) => `${file} ${program}`);
  });
  const inTable = startedPrograms.map(({ file, program }) => `${file} ${program}`);
  assert.deepEqual(
    inSource.toSorted(),
    inTable.toSorted(),
    'add new places to test/architecture/started-programs.ts',
  );
});

test('every place that starts a program with external arguments checks the arguments, and the table says why they cannot be parsed as options', () => {
  for (const { file, program, outside, check, end } of startedPrograms) {
    const where = `${file} ${program}`;
    assert.ok(outside === '' || check !== '', `${where}: nothing checks its external arguments`);
    assert.equal(end === 'nothing from outside', outside === '', `${where}: what ends its options`);
  }
});

for (const [what, source, programs] of [
  ['a call with a list', "await run('mount', ['-a'], signal);", ["'mount'"]],
  ['a call of a private method', "await this.#run('umount', args);", ["'umount'"]],
  ['a call over several lines', "this.#run(\n  'stat',\n  ['-c', path],\n)", ["'stat'"]],
  ['a program from a variable', 'spawn(program, args, {})', ['program']],
  ['a command as an object', "runChecked({ file: 'ip', args, clock }, signal)", ["'ip'"]],
  ['a command without a name of its own', 'deps.run({ file, args, clock }, signal)', ['file']],
  ['a parameter list', 'type Run = (file: string, args: readonly string[]) => void', []],
  ['a statement of a database', "this.#put.run('reserved', value); db.exec('COMMIT')", []],
  ['a comment', "// run('mount', ['-a'])", []],
] as const)
  test(`the search for started programs reads ${what}`, () => {
    assert.deepEqual([...startsIn(source).programs], programs);
  });

test('a file that can start programs is found however it loads node:child_process', () => {
  for (const source of [
    "import * as all from 'node:child_process';",
    "import { runCommand as go } from './run-command.ts';",
    "const { spawn } = await import('child_process');",
  ])
    assert.equal(startsIn(source).hasMeans, true, source);
});

test('no shell reads text from outside: only one shell is started, with a fixed script', () => {
  const [shells, options]: [string[], string[]] = [[], []];
  for (const [file, source] of sourcesOf()) {
    const { programs, hasMeans } = startsIn(source);
    if (programs.size === 0 && !hasMeans) continue;
    if (/(['"`])(?:\/bin\/|\/usr\/bin\/)?(?:ba|da)?sh\1/.test(source)) shells.push(file);
    if (/\bshell\s*:/.test(codeOnly(source))) options.push(file);
    if (!/child_process/.test(source)) continue;
    const names = /\bimport \{ (.*) \} from 'node:child_process';/.exec(source)?.[1]?.split(', ') ?? ['*'];
    if (!names.every((name) => ['spawn', 'spawnSync', 'type ChildProcess'].includes(name)))
      options.push(file);
  }
  assert.deepEqual(shells, ['src/node/shutdown/logind.ts']);
  const [, logind = ''] = sourcesOf().find(([file]) => file === shells[0]) ?? [];
  assert.match(logind, /'sh',\s*'-c',\s*`echo \$\{held\}; exec cat >\/dev\/null`,\s*\]/);
  assert.match(logind, /const held = 'held';/);
  assert.deepEqual(options, []);
});
