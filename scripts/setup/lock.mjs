import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { closeSync, mkdirSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { SetupError } from './task.mjs';

const waitLimitMs = 30 * 60_000;

/**
 * Runs the work while no other set-up on this machine holds the directory's lock. flock(1) holds it until its standard
 * input ends, so the kernel releases the lock when this process dies, however it dies.
 */
export async function withLock(host, directory, work) {
  const path = lockPath(host, directory);
  let lock = await acquire(path, ['-n']);
  if (lock === undefined) {
    host.say('another set-up is at work here, waiting for it');
    lock = await acquire(path, []);
  }
  try {
    return await work();
  } finally {
    await lock.release();
  }
}

/**
 * Returns the path to lock for a directory. Any user who can open a file can lock it, so root locks
 * a file in /run that only root can open; /run is empty after a boot. Other users lock the
 * directory itself.
 */
function lockPath(host, directory) {
  if (host.uid !== 0) return directory;
  const locks = join(host.root, 'run/kubeling-set-up');
  mkdirSync(locks, { recursive: true, mode: 0o700 });
  const path = join(locks, `${createHash('sha256').update(directory).digest('hex').slice(0, 16)}.lock`);
  closeSync(openSync(path, 'a', 0o600));
  return path;
}

/** Returns the lock, or undefined when `-n` is among the options and another process holds it. */
function acquire(directory, options) {
  return new Promise((resolve, reject) => {
    // Detached, so that Ctrl-C does not kill flock: this process finishes its work and then
    // releases the lock.
    const child = spawn('flock', [...options, directory, 'sh', '-c', 'echo held; exec cat >/dev/null'], {
      stdio: ['pipe', 'pipe', 'ignore'],
      detached: true,
    });
    const closed = new Promise((done) => child.once('close', done));
    const limit = setTimeout(() => {
      child.kill();
      reject(
        new SetupError(
          'Cannot wait any longer for the other set-up: is it stuck? End it and run this again.',
        ),
      );
    }, waitLimitMs);
    child.once('error', (error) => {
      clearTimeout(limit);
      reject(
        new SetupError(`Cannot lock ${directory} with flock, which is part of util-linux: ${error.message}`),
      );
    });
    child.stdout.once('data', () => {
      clearTimeout(limit);
      resolve({
        async release() {
          child.stdin.end();
          await closed;
        },
      });
    });
    void closed.then((code) => {
      clearTimeout(limit);
      if (code === 1 && options.includes('-n')) resolve(undefined);
      else reject(new SetupError(`Cannot lock ${directory} with flock: exit code ${code}`));
    });
  });
}
