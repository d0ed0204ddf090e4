import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findCommand } from './host.mjs';
import { runTask, SetupError, withoutSharedCache } from './task.mjs';

/**
 * The file that marks the npm packages as complete is inside node_modules, so that it is removed
 * together with the packages.
 */
const stampName = '.kubeling-setup.json';

/** Whether node_modules matches package-lock.json for this platform. */
export function npmPackagesAreCurrent(host) {
  return read(host, 'node_modules', stampName) === stampFor(host) && nodeIsProvided(host);
}

function stampFor(host) {
  const lock = createHash('sha256')
    .update(read(host, 'package-lock.json') ?? '')
    .digest('hex');
  return `${JSON.stringify({ lock, platform: `${host.platform}-${host.arch}` })}\n`;
}

function read(host, ...path) {
  try {
    return readFileSync(join(host.repo, ...path), 'utf8');
  } catch {
    return undefined;
  }
}

/** Downloads and unpacks the npm packages; must be followed by `finishNpmPackages`. */
export async function installNpmPackages(host) {
  if (!installedByHand(host)) await npmCi(host);
}

/**
 * Selects the Node.js to use and records that the packages are complete. Runs after the system
 * packages are installed, because the pinned Node.js needs their libraries.
 */
export function finishNpmPackages(host) {
  provideNode(host);
  const stamp = join(host.repo, 'node_modules', stampName);
  mkdirSync(join(host.repo, 'node_modules'), { recursive: true });
  writeFileSync(`${stamp}.new`, stampFor(host));
  renameSync(`${stamp}.new`, stamp);
}

/**
 * Whether an npm install of the user has already installed every package of the lock file in its
 * version.
 */
function installedByHand(host) {
  const lock = packagesIn(read(host, 'package-lock.json'));
  const there = packagesIn(read(host, 'node_modules', '.package-lock.json'));
  const pinned = `node_modules/node-linux-${host.arch}`;
  return Object.entries(lock).every(([path, wanted]) => {
    const found = there[path];
    if (path === '') return true;
    if (found === undefined) return wanted.optional === true && path !== pinned;
    return found.version === wanted.version && existsSync(join(host.repo, path));
  });
}

function packagesIn(text) {
  try {
    return JSON.parse(text).packages ?? {};
  } catch {
    return {};
  }
}

async function npmCi(host) {
  const npm = findCommand(host, 'npm');
  if (npm === undefined) {
    throw new SetupError(
      'Cannot install the npm packages as npm is missing.\nOn Debian: apt-get install npm',
    );
  }
  host.say('installing the npm packages (npm ci), the pinned Node.js among them');
  const started = performance.now();
  let fetched = 0;
  const done = await runTask(host, {
    command: npm,
    // Install scripts are disabled, because no package needs one. Development packages are
    // installed whatever NODE_ENV is, and the set-up must also run under a Node.js that is older
    // than package.json requires.
    args: [
      'ci',
      ...['--ignore-scripts', '--no-audit', '--no-fund', '--engine-strict=false', '--loglevel=http'],
      ...['--include=dev', '--include=optional'],
    ],
    cwd: host.repo,
    env: withoutSharedCache(host.env),
    progress: (line) => (/^npm http (fetch|cache)/.test(line) ? `${++fetched} downloads` : undefined),
  });
  if (done.code !== 0) {
    throw new SetupError(
      `Cannot install the npm packages as npm ci ended with ${done.code}. It says:\n${done.words}\n` +
        'Can this machine reach the npm registry? Try: npm ping',
    );
  }
  host.say(`npm packages are there after ${Math.round((performance.now() - started) / 1000)} s`);
}

const neededNode = [24, 15];

/**
 * Whether there is a usable Node.js: the pinned one in node_modules/.bin, or one on the PATH that
 * is new enough.
 */
function nodeIsProvided(host) {
  return existsSync(join(host.repo, 'node_modules/.bin/node')) || isNewEnough(host.nodeVersion);
}

/**
 * Makes sure that npm scripts find the right Node.js. Some versions of npm unpack the pinned
 * Node.js without linking it. Where the pinned Node.js cannot run (musl), it is removed, because it
 * would hide a working Node.js of the system.
 */
function provideNode(host) {
  const packageName = `node-linux-${host.arch}`;
  const pinned = join(host.repo, 'node_modules', packageName);
  const link = join(host.repo, 'node_modules/.bin/node');
  const tried = spawnSync(join(pinned, 'bin/node'), ['--version'], { timeout: 30_000, encoding: 'utf8' });
  if (tried.status === 0) {
    if (existsSync(link)) return;
    rmSync(link, { force: true });
    mkdirSync(join(host.repo, 'node_modules/.bin'), { recursive: true });
    symlinkSync(`../${packageName}/bin/node`, link);
    return;
  }
  rmSync(link, { force: true });
  rmSync(pinned, { recursive: true, force: true });
  if (isNewEnough(host.nodeVersion)) return;
  throw new SetupError(
    `Cannot use the pinned Node.js on this system, and Node.js must then be ${neededNode.join('.')} or newer: ` +
      `current value is ${host.nodeVersion}.\nThe pinned one says: ${whyNot(tried)}\nInstall a newer one (Alpine: apk add nodejs-current) and run this again.`,
  );
}

function whyNot({ error, stderr, status, signal }) {
  return error?.message ?? (stderr?.trim() || `exit code ${status ?? signal}`);
}

function isNewEnough(version) {
  const [major, minor] = version.split('.').map(Number);
  return major > neededNode[0] || (major === neededNode[0] && minor >= neededNode[1]);
}
