import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { Attempt, Target } from './connection-attempt.ts';

interface Order {
  readonly target: Target;
  readonly text: string;
  readonly uid: number | undefined;
  readonly waitMs: number;
}

const enoughBytes = 4_096;
const { target, text, uid, waitMs } = JSON.parse(process.argv[2] ?? '') as Order;

// Switches to the requested user only after Node.js has loaded this file, which that user may not
// be able to read. The capabilities are dropped as well.
if (uid !== undefined) {
  process.setgroups?.([]);
  process.setgid?.(uid);
  process.setuid?.(uid);
}

function open(): Socket {
  if ('path' in target) return connect({ path: target.path });
  const { host, port } = target;
  return target.tls === true
    ? connectTls({ host, port, rejectUnauthorized: false })
    : connect({ host, port });
}

const socket = open();
let response = '';
function end(outcome: Attempt): void {
  process.stdout.write(JSON.stringify(outcome), () => process.exit(0));
}
setTimeout(() => end(response === '' ? { error: 'ETIMEDOUT' } : { answer: response }), waitMs);
socket.once('error', (error: NodeJS.ErrnoException) => end({ error: error.code ?? error.message }));
socket.once('close', () => end({ answer: response }));
socket.on('data', (chunk) => {
  response += chunk.toString('latin1');
  if (response.length >= enoughBytes) end({ answer: response });
});
socket.once('connect', () => socket.write(text));
