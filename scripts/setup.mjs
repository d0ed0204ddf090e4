#!/usr/bin/env node
/**
 * Brings a fresh checkout to the point where kubeling runs: npm packages (with the pinned Node.js) and the tools of
 * the operating system. Plain JavaScript without dependencies, for any Node.js from 18 on; the second run does nothing.
 *
 *   node scripts/setup.mjs [--for start|test|fresh]
 */
import { realpathSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { aptGet, installWithApt } from './setup/apt.mjs';
import { realHost } from './setup/host.mjs';
import { kubectlIsPresent, provideKubectl } from './setup/kubectl.mjs';
import { withLock } from './setup/lock.mjs';
import { finishNpmPackages, installNpmPackages, npmPackagesAreCurrent } from './setup/npm-packages.mjs';
import { explainMissing, missingPackages, runningContainerd } from './setup/system-packages.mjs';
import { SetupError } from './setup/task.mjs';

const usage = 'usage: node scripts/setup.mjs [--for start|test|fresh]';
const oldestNode = 18;
const purposes = ['start', 'test', 'fresh'];

function purposeOf(argv) {
  const words = argv.flatMap((word) => (word.startsWith('--for=') ? ['--for', word.slice(6)] : [word]));
  if (words.length === 0) return 'start';
  if (words.length === 2 && words[0] === '--for' && purposes.includes(words[1])) return words[1];
  throw new SetupError(`Cannot understand ${JSON.stringify(argv.join(' '))}\n${usage}`);
}

function checkPlatform(host) {
  if (host.platform !== 'linux') {
    throw new SetupError(
      `Cannot set up kubeling here as the operating system must be Linux: current value is ${host.platform}.\n` +
        'Use a Linux machine, or a virtual machine with one.',
    );
  }
  if (host.arch !== 'x64' && host.arch !== 'arm64') {
    throw new SetupError(
      `Cannot set up kubeling here as the processor must be x64 or arm64: current value is ${host.arch}.\n` +
        'The pinned Node.js and the tools for development exist for these two only.',
    );
  }
  if (Number.parseInt(host.nodeVersion, 10) < oldestNode) {
    throw new SetupError(
      `Cannot set up kubeling as Node.js must be ${oldestNode} or newer: current value is ${host.nodeVersion}.\n` +
        'Any later version will do for the set-up; kubeling then brings its own.',
    );
  }
}

async function provideSystemPackages(host, purpose) {
  const missing = missingPackages(host, purpose);
  const running = missing.some((entry) => entry.service === 'containerd')
    ? runningContainerd(host)
    : undefined;
  const left = running === undefined ? [] : missing.filter((entry) => entry.service === 'containerd');
  if (left.length > 0) {
    const names = left.map((entry) => entry.packages.apt).join(', ');
    host.say(
      `a containerd runs already (${running}): ${names} not installed beside it, nothing of it touched`,
    );
  }
  const wanted = missing.filter((entry) => !left.includes(entry));
  if (wanted.length === 0) return;
  if (host.uid !== 0 || aptGet(host) === undefined) throw new SetupError(explainMissing(host, wanted));
  await withLock(host, host.root, () => installWithApt(host, purpose, wanted));
}

function isComplete(host, purpose) {
  if (!npmPackagesAreCurrent(host) || missingPackages(host, purpose).length > 0) return false;
  return purpose !== 'test' || kubectlIsPresent(host);
}

/**
 * Installs what is missing and returns the exit code. Safe to run concurrently in one checkout: the
 * second run waits, then finds nothing to do.
 */
export async function setUp(host, argv) {
  try {
    const purpose = purposeOf(argv);
    checkPlatform(host);
    if (isComplete(host, purpose)) return 0;
    await withLock(host, host.repo, async () => {
      const isCurrent = npmPackagesAreCurrent(host);
      if (!isCurrent) await installNpmPackages(host);
      await provideSystemPackages(host, purpose);
      if (!isCurrent) finishNpmPackages(host);
      if (purpose === 'test') await provideKubectl(host);
    });
    host.say('ready');
    return 0;
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    host.complain(error.message);
    return error.exitCode;
  }
}

const self = fileURLToPath(import.meta.url);
if (process.argv[1] !== undefined && realpathSync(process.argv[1]) === self) {
  process.exitCode = await setUp(realHost(), process.argv.slice(2));
}
