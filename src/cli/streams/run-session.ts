import type { Readable, Writable } from 'node:stream';
import {
  abortable,
  type Clock,
  errnoOf,
  KubelingError,
  LinkedController,
  withDeadline,
  writeAll,
} from '../../lib/index.ts';
import type { SpdyConnection } from '../../protocols/spdy/index.ts';
import {
  openRemoteStreams,
  type RemoteExit,
  type RemoteStreams,
  type RequestedStreams,
  readRemoteExit,
} from '../../server/index.ts';
import { rawMode, type Stdio, watchSize } from './stdio.ts';

export interface SessionOptions {
  readonly clock: Clock;
  readonly streams: RequestedStreams;
  /** Whether the local terminal is used in raw mode. */
  readonly terminal: 'raw' | 'as-is';
}

/** Larger than any Status. */
const maxEndBytes = 1 << 20;
/**
 * A runtime that is stuck on unread input never sends the exit status; the process has closed its
 * output by then.
 */
const endWithinMs = 5_000;

/**
 * Connects the standard streams to a process in a container until it exits; returns how it exited.
 */
export async function runSession(
  connection: SpdyConnection,
  stdio: Stdio,
  { clock, streams: wanted, terminal }: SessionOptions,
  signal: AbortSignal,
): Promise<RemoteExit> {
  using streams = new DisposableStack();
  streams.use(connection);
  const remote = openRemoteStreams(connection, wanted);
  if (terminal === 'raw') {
    streams.use(rawMode(stdio));
    streams.use(watchSize(stdio, (size) => remote.resize?.write(size)));
  }
  if (remote.stdin !== undefined) streams.use(feed(stdio.stdin, remote.stdin));
  return await abortable(listen(remote, stdio, clock, signal), signal);
}

async function listen(
  remote: RemoteStreams,
  stdio: Stdio,
  clock: Clock,
  parent: AbortSignal,
): Promise<RemoteExit> {
  using work = new LinkedController(parent);
  const told = readAll(remote.error);
  const outputs = Promise.all([
    copy(remote.stdout, stdio.stdout, work.signal),
    copy(remote.stderr, stdio.stderr, work.signal),
  ]);
  const [end = ''] = await Promise.all([
    told,
    outputs.then(() => (remote.stdin === undefined ? told : soon(told, clock, work.signal))),
  ]).catch((cause) => {
    // A runtime that ends with unread input resets the connection, and its last bytes are lost.
    if (!['ECONNRESET', 'EPIPE'].includes(errnoOf(cause) ?? '')) throw cause;
    return [];
  });
  if (end === '')
    throw new KubelingError(
      'STREAM_BROKEN',
      'The connection broke before the exit status arrived: the exit code is unknown',
    );
  return readRemoteExit(end);
}

async function soon(told: Promise<string>, clock: Clock, signal: AbortSignal): Promise<string> {
  try {
    return await withDeadline({ clock, ms: endWithinMs, what: 'get the exit status' }, () => told, signal);
  } catch (cause) {
    if (!(cause instanceof KubelingError && cause.code === 'DEADLINE_EXCEEDED')) throw cause;
    const message = `The output has ended, but the runtime sent no exit status within ${endWithinMs} ms: the exit code is unknown`;
    throw new KubelingError('STREAM_BROKEN', message, { cause });
  }
}

async function copy(from: Readable | undefined, to: Writable, signal: AbortSignal): Promise<void> {
  if (from === undefined) return;
  for await (const chunk of from as AsyncIterable<Buffer>) await writeAll(to, chunk, signal);
}

async function readAll(from: Readable): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of from as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size <= maxEndBytes) chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

/** The end of standard input closes the process's input. */
function feed(from: Stdio['stdin'], to: Writable): Disposable {
  from.pipe(to);
  return {
    [Symbol.dispose]() {
      from.unpipe(to);
      from.pause();
    },
  };
}
