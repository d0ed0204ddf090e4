import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findCommand } from './host.mjs';
import { missingPackages } from './system-packages.mjs';
import { runTask, SetupError } from './task.mjs';
import { disableUnits, unitsToCome } from './units.mjs';

/** Returns the path of apt-get; undefined on other distributions. */
export function aptGet(host) {
  return findCommand(host, 'apt-get');
}

/**
 * Installs the system packages that provide the given tools, and then checks that their commands
 * and files exist.
 */
export async function installWithApt(host, purpose, wanted) {
  host.say(`refreshing the list of packages (apt-get update)`);
  const update = await apt(host, ['update']);
  // A failed refresh of the package lists must not fail the set-up: one of many sources may be
  // unreachable, and the packages may still be installable.
  if (update.code !== 0) host.say('the list of packages could not be refreshed, trying with what is known');
  const units = unitsToCome(host, wanted);
  const withoutService = keepServicesStopped(host);
  try {
    const replacing = wanted.filter((entry) => entry.replaces !== undefined);
    await install(
      host,
      wanted.filter((entry) => !replacing.includes(entry)),
      ['--no-remove'],
    );
    await install(host, replacing, []);
  } finally {
    withoutService.undo();
    await disableUnits(host, units);
  }
  const still = missingPackages(host, purpose).filter((entry) => wanted.includes(entry));
  if (still.length > 0) {
    const packages = still.map((entry) => entry.packages.apt).join(' ');
    throw new SetupError(
      `Cannot find what these packages bring, though they are installed: ${packages}\n` +
        `Repair them with:\n  apt-get install --reinstall ${packages}`,
    );
  }
}

async function install(host, wanted, options) {
  if (wanted.length === 0) return;
  const packages = [...new Set(wanted.map((entry) => entry.packages.apt))];
  host.say(`installing ${packages.join(', ')} (apt-get install)`);
  const done = await apt(host, [
    'install',
    '--no-install-recommends',
    '--no-upgrade',
    ...options,
    ...packages,
  ]);
  if (done.code === 0) return;
  throw new SetupError(
    `Cannot install ${packages.join(', ')} as apt-get ended with ${done.code}. It says:\n${done.words}\n` +
      `Try it by hand:\n  apt-get update && apt-get install --no-install-recommends ${packages.join(' ')}`,
  );
}

const lockWaitSeconds = 120;

function apt(host, args) {
  const options = [
    `DPkg::Lock::Timeout=${lockWaitSeconds}`,
    'Acquire::Retries=3',
    'Acquire::http::Timeout=30',
    'Acquire::https::Timeout=30',
    'Dpkg::Options::=--force-confdef',
    'Dpkg::Options::=--force-confold',
    'Dpkg::Use-Pty=0',
  ];
  return runTask(host, {
    command: aptGet(host),
    args: ['-y', '-q', ...options.flatMap((option) => ['-o', option]), ...args],
    cwd: host.repo,
    // needrestart would restart services, including a running container runtime, after the
    // installation of any package.
    env: { ...host.env, DEBIAN_FRONTEND: 'noninteractive', NEEDRESTART_SUSPEND: '1', LC_ALL: 'C.UTF-8' },
    progress: (line) => (line.trim() === '' ? undefined : line.trim().slice(0, 90)),
  });
}

const marker = '# written by the set-up of kubeling for the time of one installation';

/**
 * Debian starts the service of a package when it is installed, unless /usr/sbin/policy-rc.d forbids
 * that. An existing policy-rc.d of the administrator stays; that of the set-up is removed after the
 * installation, also if it was left by an earlier set-up that was killed.
 */
function keepServicesStopped(host) {
  const path = join(host.root, 'usr/sbin/policy-rc.d');
  const foreign = existsSync(path) && !readFileSync(path, 'utf8').includes(marker);
  if (foreign) return { undo() {} };
  writeFileSync(path, `#!/bin/sh\n${marker}\nexit 101\n`, { mode: 0o755 });
  return { undo: () => rmSync(path, { force: true }) };
}
