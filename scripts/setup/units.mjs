import { existsSync, lstatSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { findCommand } from './host.mjs';
import { runTask } from './task.mjs';

const unitDirectories = ['usr/lib/systemd/system', 'lib/systemd/system'];
const enabledDirectory = 'etc/systemd/system';

function isInstalled(host, unit) {
  return unitDirectories.some((directory) => existsSync(join(host.root, directory, unit)));
}

/**
 * Returns the units that the packages of the given entries will install. Units that exist already
 * are not returned.
 */
export function unitsToCome(host, entries) {
  return entries.flatMap((entry) => entry.units ?? []).filter((unit) => !isInstalled(host, unit));
}

/**
 * Debian enables a unit when its package is first installed, also where systemd does not run, so
 * the next boot would start it. Removes the links that enable it, as `systemctl disable` does.
 * Debian's own record of the links stays, so an upgrade of the package finds the unit disabled and
 * leaves it so.
 */
export async function disableUnits(host, units) {
  for (const unit of units.filter((name) => isInstalled(host, name))) {
    for (const link of linksOf(host, unit)) rmSync(link);
    await disableInitScript(host, unit.replace(/\.service$/, ''));
    host.say(`${unit} is installed but not enabled: the machine does not start it at boot`);
  }
}

function linksOf(host, unit) {
  const directory = join(host.root, enabledDirectory);
  if (!existsSync(directory)) return [];
  return readdirSync(directory)
    .filter((name) => /\.(wants|requires)$/.test(name))
    .map((name) => join(directory, name, unit))
    .filter((path) => lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink());
}

/**
 * Disables the init script of the service on a machine whose init is not systemd. Its tool
 * update-rc.d is in Debian's essential package init-system-helpers.
 */
async function disableInitScript(host, name) {
  const command = findCommand(host, 'update-rc.d');
  if (command === undefined || !existsSync(join(host.root, 'etc/init.d', name))) return;
  const env = { ...host.env, LC_ALL: 'C.UTF-8' };
  const args = [name, 'disable'];
  const done = await runTask(host, { command, args, cwd: host.repo, env, progress: () => undefined });
  if (done.code !== 0) host.say(`the init script ${name} could not be disabled: ${done.words}`);
}
