import { createHash } from 'node:crypto';
import { connect, createServer } from 'node:net';
import { SetupError } from './task.mjs';

const waitLimitMs = 30 * 60_000;

/**
 * Runs the work while no other set-up on this machine holds the same name. The lock is an abstract Unix socket: the
 * kernel lets it go when its holder dies, however it dies, and no file stays behind.
 */
export async function withLock(host, name, work) {
  const address = `\0kubeling-setup-${createHash('sha256').update(name).digest('hex').slice(0, 32)}`;
  const deadline = performance.now() + waitLimitMs;
  let server = await tryListen(address);
  if (server === undefined) host.say('another set-up is at work here, waiting for it');
  while (server === undefined) {
    if (performance.now() > deadline) {
      throw new SetupError(
        'Cannot wait any longer for the other set-up: is it stuck? End it and run this again.',
      );
    }
    await holderGone(address, deadline - performance.now());
    server = await tryListen(address);
  }
  try {
    return await work();
  } finally {
    server.release();
  }
}

/** Whoever connects is held until the lock is let go. */
function tryListen(address) {
  return new Promise((resolve, reject) => {
    const waiting = new Set();
    const server = createServer((socket) => {
      waiting.add(socket);
      socket.on('error', () => {});
      socket.once('close', () => waiting.delete(socket));
    });
    server.once('error', (error) => (error.code === 'EADDRINUSE' ? resolve(undefined) : reject(error)));
    server.listen(address, () => {
      resolve({
        release() {
          server.close();
          for (const socket of waiting) socket.destroy();
        },
      });
    });
  });
}

function holderGone(address, limitMs) {
  return new Promise((resolve) => {
    const socket = connect(address);
    const limit = setTimeout(() => socket.destroy(), limitMs);
    socket.on('error', () => {});
    socket.once('close', () => {
      clearTimeout(limit);
      // A short pause, so that a holder that refuses connections is not asked in a tight loop.
      setTimeout(resolve, 20);
    });
    socket.resume();
  });
}
