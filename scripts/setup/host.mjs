import { accessSync, constants, statSync } from 'node:fs';
import { arch, platform } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * How the set-up accesses the machine. All access goes through here, so that tests can replace it:
 * `root` is prefixed to absolute paths, and commands are looked up in `env.PATH` and the
 * directories of the administrator.
 */
export function realHost() {
  return {
    repo: fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, ''),
    root: '/',
    env: process.env,
    platform: platform(),
    arch: arch(),
    uid: process.getuid?.() ?? -1,
    nodeVersion: process.versions.node,
    say: (text) => process.stdout.write(`set-up: ${text}\n`),
    complain: (text) => process.stderr.write(`set-up: ${text}\n`),
  };
}

// Directories of commands for administrators. They are often not in the PATH of ordinary users, who
// must be able to check for these commands too.
const administratorDirectories = ['/usr/local/sbin', '/usr/sbin', '/sbin'];

/** Returns the path of a command; undefined if it is not installed. */
export function findCommand(host, name) {
  const onPath = (host.env.PATH ?? '').split(':').filter((directory) => directory !== '');
  const others = administratorDirectories.map((directory) => join(host.root, directory));
  return [...onPath, ...others].map((directory) => join(directory, name)).find(isExecutable);
}

function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
