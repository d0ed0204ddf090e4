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
  /** Whether our own terminal becomes that of the process. */
  readonly terminal: 'raw' | 'as-is';
}

/** More than any Status says. */
const maxEndBytes = 1 << 20;
/** A runtime that is stuck on input nobody takes never tells the end; a process has ended its output by then. */
const endWithinMs = 5_000;

/** Joins our standard streams to those of a process in a container until it ends; answers how. */
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
    // A runtime that ends with our input unread resets the connection, and its last words are lost with it.
    if (!['ECONNRESET', 'EPIPE'].includes(errnoOf(cause) ?? '')) throw cause;
    return [];
  });
  if (end === '')
    throw new KubelingError(
      'STREAM_BROKEN',
      'The connection broke off before the end was told: its exit code is not known',
    );
  return readRemoteExit(end);
}

async function soon(told: Promise<string>, clock: Clock, signal: AbortSignal): Promise<string> {
  try {
    return await withDeadline({ clock, ms: endWithinMs, what: 'hear how it ended' }, () => told, signal);
  } catch (cause) {
    if (!(cause instanceof KubelingError && cause.code === 'DEADLINE_EXCEEDED')) throw cause;
    const message = `The output has ended, but the runtime did not tell within ${endWithinMs} ms how the process ended: its exit code is not known`;
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

/** The end of our input becomes the end of theirs. */
function feed(from: Stdio['stdin'], to: Writable): Disposable {
  from.pipe(to);
  return {
    [Symbol.dispose]() {
      from.unpipe(to);
      from.pause();
    },
  };
}
