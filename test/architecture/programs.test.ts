import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { glob, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { knowledge } from './program-knowledge.ts';
import { type Knowledge, type PackageEntry, programBreaches } from './program-rules.ts';
import { programStarts } from './program-starts.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
// The set-up is plain JavaScript by design, so its types are declared here.
const tableUrl = new URL('../../scripts/setup/system-packages.mjs', import.meta.url).href;
const { systemPackages } = (await import(tableUrl)) as { readonly systemPackages: readonly PackageEntry[] };

const patterns = ['{src,test,bench,scripts}/**/*.{ts,mjs,sh}', 'kubeling', '.ci/run'];

async function sources(): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  for await (const path of glob(patterns, { cwd: root }))
    found.set(path, await readFile(join(root, path), 'utf8'));
  return found;
}

describe('the check that the set-up installs every started program and no other', () => {
  it('finds no violation in this repository', async () => {
    const found = await sources();
    assert.ok(found.has('src/lib/run-command.ts') && found.has('test/fresh/enter.sh'));
    assert.deepEqual(programBreaches(found, systemPackages, knowledge), []);
  });

  const none: Knowledge = {
    declared: {},
    essential: {},
    alongside: {},
    given: {},
    optional: {},
    indirect: {},
  };

  function breaches(
    files: Readonly<Record<string, string>>,
    { table = [], ...known }: Partial<Knowledge> & { readonly table?: readonly PackageEntry[] } = {},
  ): readonly string[] {
    return programBreaches(new Map(Object.entries(files)), table, { ...none, ...known });
  }

  function entry(name: string, ...purposes: PackageEntry['for']): PackageEntry {
    return { packages: { apt: name }, present: { commands: [name] }, for: purposes };
  }

  const spawned = `import { spawn } from 'node:child_process';\nspawn('mkfs.xfs', []);`;

  it('reports a started program that no package provides', () => {
    const lacks = (path: string, purpose: string) =>
      `${path} starts mkfs.xfs, which the set-up does not install for ${purpose}`;
    assert.deepEqual(breaches({ 'test/a.ts': spawned }), [lacks('test/a.ts', 'test')]);
    assert.deepEqual(breaches({ 'src/a.ts': spawned }), [
      lacks('src/a.ts', 'start'),
      lacks('src/a.ts', 'test'),
    ]);
    assert.deepEqual(breaches({ 'src/a.test.ts': spawned }), [lacks('src/a.test.ts', 'test')]);
    assert.deepEqual(breaches({ 'test/fresh/a.ts': spawned }), [lacks('test/fresh/a.ts', 'fresh')]);
    const table = [entry('mkfs.xfs', 'test')];
    assert.deepEqual(breaches({ 'src/a.ts': spawned }, { table }), [lacks('src/a.ts', 'start')]);
  });

  it('accepts a started program that is in the table, in an essential package, or listed as another program of a package in the table', () => {
    const files = { 'test/a.ts': spawned };
    assert.deepEqual(breaches(files, { table: [entry('mkfs.xfs', 'test')] }), []);
    assert.deepEqual(breaches(files, { essential: { xfsprogs: ['mkfs.xfs'] } }), []);
    assert.deepEqual(breaches(files, { given: { 'mkfs.xfs': 'a reason' } }), []);
    const both = { 'test/a.ts': `${spawned}\nspawn('xfs_io', []);` };
    const table = [entry('xfs_io', 'test')];
    assert.deepEqual(breaches(both, { table, alongside: { xfs_io: ['mkfs.xfs'] } }), []);
  });

  it('accepts an optional program if the tests install it', () => {
    const optional = { 'mkfs.xfs': 'a reason' };
    const files = { 'src/a.ts': spawned };
    assert.deepEqual(breaches(files, { optional, table: [entry('mkfs.xfs', 'test')] }), []);
    assert.equal(breaches(files, { optional }).length, 1);
  });

  it('reports a listed program that is never started', () => {
    const lists: Partial<Knowledge> = {
      essential: { bash: ['bash'] },
      alongside: { mount: ['losetup'] },
      given: { git: 'a reason' },
      optional: { chattr: 'a reason' },
      indirect: { bridge: 'a reason' },
    };
    assert.deepEqual(breaches({}, { ...lists, table: [entry('strace', 'test')] }), [
      'nothing starts strace, which the set-up installs',
      'nothing starts bash, which is listed as essential',
      'nothing starts losetup, which is listed as brought along',
      'nothing starts git, which is listed as given',
      'nothing starts chattr, which is listed as optional',
      'bridge is listed as used indirectly, but is not in the table',
    ]);
  });

  it('requires a declaration where the source does not name the program, or names one that starts other programs', () => {
    const dynamic = `import { spawn } from 'node:child_process';\nspawn(file, []);\nspawn('sh', ['-c', 'git']);`;
    const known = { given: { git: 'a reason', sh: 'a reason' } };
    const declared = { 'test/a.ts': { places: ['file', "'sh'"], starts: ['git'] } };
    assert.deepEqual(breaches({ 'test/a.ts': dynamic }, { ...known, declared }), []);
    const [problem] = breaches({ 'test/a.ts': dynamic }, known);
    assert.equal(problem, `test/a.ts has places to declare ["'sh'","file"], but declares []`);
    const twice = { 'test/a.ts': `${dynamic}\nspawn(file, []);` };
    assert.match(
      breaches(twice, { ...known, declared }).join(),
      /has places to declare \["'sh'","file","file"\]/,
    );
    const script = { 'test/a.sh': '#!/bin/sh\ngit\n' };
    assert.match(breaches(script, known)[0] ?? '', /^test\/a\.sh has places to declare \["a script"\]/);
  });

  it('reports declarations that no longer match the source', () => {
    const declared = { 'test/a.ts': { starts: ['git'] }, 'test/b.ts': { starts: [] } };
    assert.deepEqual(breaches({ 'test/a.ts': '' }, { declared, given: { git: 'a reason' } }), [
      'test/a.ts is declared to start git, which it does not name',
      'test/b.ts is declared, but there is no such file',
    ]);
  });

  it('finds the programs passed to the wrappers of a file', () => {
    const source = `class A { #run(file: string) { return runCommand({ file, args }, signal); } go() { this.#run('strace'); } }`;
    const declared = { 'test/a.ts': { places: ['file'], starts: [], wrappers: ['.#run'] } };
    assert.match(breaches({ 'test/a.ts': source }, { declared }).join(), /starts strace/);
  });
});

describe('the search for places that start a program', () => {
  const child = (names: string, body: string) => `import { ${names} } from 'node:child_process';\n${body}`;
  const cases: readonly (readonly [string, string, readonly (string | undefined)[]])[] = [
    ['a call', child('spawn', `spawn('/bin/ls', []); spawn("git")`), ['ls', 'git']],
    ['a renamed function', child('execFile as run', `run('ls')`), ['ls']],
    [
      'a promisified function',
      child('execFile', `const run = promisify(execFile);\nawait run('ls', [])`),
      ['ls'],
    ],
    ['a function promisified in place', child('execFile', `await promisify(execFile)('ls', [])`), ['ls']],
    ['a function that is passed on', child('spawn', `start(spawn)`), [undefined]],
    ['a computed program', child('spawn', 'spawn(`mkfs.${type}`)'), [undefined]],
    ['a whole command line', child('execSync', `execSync('rm -rf x')`), [undefined]],
    [
      'runCommand',
      `runCommand({ file: 'ls', args }, signal); runChecked({ file, args }, signal)`,
      ['ls', undefined],
    ],
    ['Node.js itself', child('spawn', `spawn(process.execPath, [script])`), []],
    ['words in comments and strings', child('spawn', `// spawn('ls')\nconst text = "spawn('ls')";`), []],
    ['functions of the same name', `exec(container, ['ls']); this.spawn('ls')`, []],
    ['types', `import type { ChildProcess } from 'node:child_process';`, []],
  ];
  for (const [name, source, expected] of cases)
    it(`the search for started programs handles ${name}`, () => {
      const programs = programStarts(source).map(({ program }) => program);
      assert.deepEqual(programs, expected);
    });

  it('rejects every form of loading node:child_process that the search for started programs cannot follow', () => {
    for (const source of [
      `import * as child from 'node:child_process';`,
      `import child from 'child_process';`,
      `const child = await import('node:child_process');`,
      `const child = require('child_process');`,
    ])
      assert.throws(() => programStarts(source), /node:child_process/, source);
  });
});

describe('the essential packages of Debian', () => {
  const query = (...args: readonly string[]) => spawnSync('dpkg-query', args, { encoding: 'utf8' });
  const isDebian = query('--version').status === 0;

  for (const [name, programs] of Object.entries(knowledge.essential))
    it(`the package ${name} of this Debian is essential and contains ${programs.join(', ')}`, {
      skip: isDebian ? false : 'this machine has no dpkg',
    }, () => {
      assert.equal(query('-W', '-f', '${Essential}', name).stdout, 'yes');
      const files = query('-L', name).stdout.split('\n');
      const lacking = programs.filter(
        (program) => !files.some((file) => /\/s?bin\/[^/]+$/.test(file) && file.endsWith(`/${program}`)),
      );
      assert.deepEqual(lacking, []);
    });
});
