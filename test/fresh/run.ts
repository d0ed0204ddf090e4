/**
 * Runs both commands of the README on a fresh Debian machine: a new root file system with only the
 * packages required by the README, run in separate namespaces, with a clone of the committed tree.
 *
 *   npm run test:fresh -- SUITE... [--only start|test] [--cache DIRECTORY] [--keep]
 *
 *   SUITE bookworm or trixie
 *   --only runs one of the two commands
 *   --cache keeps the root file systems there as archives, for the next run
 *   --keep leaves the root file system in place afterwards
 */
import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { runOnFreshMachine } from './fresh-machine.ts';
import {
  makeArchive,
  type Suite,
  shareRegistryAccess,
  suites,
  unpackArchive,
  writeResolver,
} from './root-file-system.ts';

/**
 * Not in /tmp, which is often a tmpfs: a root file system takes 1 GiB, and its node_modules and
 * images as much again.
 */
const workDirectory = '/var/tmp';
const searchPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: { only: { type: 'string' }, cache: { type: 'string' }, keep: { type: 'boolean', default: false } },
});

function chosenSuites(): readonly Suite[] {
  const known = suites.filter((suite) => positionals.includes(suite));
  const phases = options.only === undefined || ['start', 'test'].includes(options.only);
  if (known.length > 0 && known.length === positionals.length && phases) return known;
  throw new Error(
    `Invalid arguments: npm run test:fresh -- ${suites.join('|')} [--only start|test] [--cache DIRECTORY] [--keep]`,
  );
}

function git(...args: readonly string[]): string {
  return execFileSync('git', [...args], { encoding: 'utf8', cwd: import.meta.dirname }).trim();
}

async function testSuite(suite: Suite): Promise<boolean> {
  const begun = performance.now();
  const work = mkdtempSync(join(workDirectory, `kubeling-fresh-${suite}-`));
  const root = join(work, 'root');
  try {
    prepareRoot(suite, work, root);
    console.log(`fresh: root file system of ${suite} after ${seconds(begun)}`);
    const end = await runInside(suite, root);
    const ok = end.code === 0 && end.cgroupsLeft.length === 0;
    for (const cgroup of end.cgroupsLeft) console.log(`fresh: cgroup left behind: ${cgroup}`);
    console.log(`fresh: ${suite} ${ok ? 'passed' : `FAILED (${end.code})`} after ${seconds(begun)}`);
    return ok;
  } finally {
    if (options.keep) console.log(`fresh: root file system kept in ${root}`);
    else rmSync(work, { recursive: true, force: true });
  }
}

function prepareRoot(suite: Suite, work: string, root: string): void {
  const archive = join(options.cache ?? work, `${suite}.tar`);
  if (!existsSync(archive)) makeArchive(suite, archive);
  unpackArchive(archive, root);
  writeResolver(root);
  const path = join(root, 'fresh');
  mkdirSync(path);
  copyFileSync(join(import.meta.dirname, 'inside.mjs'), join(path, 'inside.mjs'));
  // Creates a bare clone, which contains committed files only.
  git(
    'clone',
    '--quiet',
    '--bare',
    '--no-hardlinks',
    git('rev-parse', '--path-format=absolute', '--git-common-dir'),
    join(path, 'kubeling.git'),
  );
}

function runInside(suite: Suite, root: string) {
  const phases = options.only === undefined ? ['start', 'test'] : [options.only];
  const inside = ['node', '/fresh/inside.mjs', '/fresh/kubeling.git', git('rev-parse', 'HEAD'), ...phases];
  const env = { HOME: '/root', PATH: searchPath, ...shareRegistryAccess(root, process.env) };
  return runOnFreshMachine({ root, name: `kubeling-fresh-${suite}-${process.pid}`, command: inside, env });
}

function seconds(sinceMs: number): string {
  return `${((performance.now() - sinceMs) / 1_000).toFixed(0)} s`;
}

const chosen = chosenSuites();
const changes = git('status', '--porcelain')
  .split('\n')
  .filter((line) => line !== '');
if (changes.length > 0) console.log(`fresh: ${changes.length} changes are not committed and are not tested`);
for (const suite of chosen) if (!(await testSuite(suite))) process.exitCode = 1;
