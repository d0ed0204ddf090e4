import { spawn } from 'node:child_process';
import { SetupError } from './task.mjs';

const waitLimitMs = 30 * 60_000;

/**
 * Runs the work while no other set-up on this machine holds the directory's lock. flock(1) holds it until its standard
 * input ends, so the kernel releases the lock when this process dies, however it dies, and no file stays behind.
 */
export async function withLock(host, directory, work) {
  let lock = await acquire(directory, ['-n']);
  if (lock === undefined) {
    host.say('another set-up is at work here, waiting for it');
    lock = await acquire(directory, []);
  }
  try {
    return await work();
  } finally {
    await lock.release();
  }
}

/** Answers the lock, or undefined when `-n` is among the options and another process holds it. */
function acquire(directory, options) {
  return new Promise((resolve, reject) => {
    // Detached: Ctrl-C reaches this process, which ends its work first and then the lock.
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
