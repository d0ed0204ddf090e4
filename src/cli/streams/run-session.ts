import type { Readable, Writable } from 'node:stream';
import { abortable, KubelingError, LinkedController } from '../../lib/index.ts';
import type { SpdyConnection } from '../../lib/spdy/index.ts';
import {
  openRemoteStreams,
  type RemoteEnd,
  type RemoteStreams,
  readRemoteEnd,
  type WantedStreams,
  writeAll,
} from '../../server/index.ts';
import { rawMode, type Stdio, watchSize } from './stdio.ts';

export interface SessionOptions {
  readonly streams: WantedStreams;
  /** Whether our own terminal becomes that of the process. */
  readonly terminal: 'raw' | 'as-is';
}

/** More than any Status says. */
const maxEndBytes = 1 << 20;

/** Joins our standard streams to those of a process in a container until it ends; answers how. */
export async function runSession(
  connection: SpdyConnection,
  stdio: Stdio,
  { streams: wanted, terminal }: SessionOptions,
  signal: AbortSignal,
): Promise<RemoteEnd> {
  using streams = new DisposableStack();
  streams.use(connection);
  const remote = openRemoteStreams(connection, wanted);
  if (terminal === 'raw') {
    streams.use(rawMode(stdio));
    streams.use(watchSize(stdio, (size) => remote.resize?.write(size)));
  }
  if (remote.stdin !== undefined) streams.use(feed(stdio.stdin, remote.stdin));
  return await abortable(listen(remote, stdio, signal), signal);
}

async function listen(remote: RemoteStreams, stdio: Stdio, parent: AbortSignal): Promise<RemoteEnd> {
  using work = new LinkedController(parent);
  const [end] = await Promise.all([
    readAll(remote.error),
    copy(remote.stdout, stdio.stdout, work.signal),
    copy(remote.stderr, stdio.stderr, work.signal),
  ]);
  if (end === '')
    throw new KubelingError('STREAM_BROKEN', 'The connection broke off before the end was told');
  return readRemoteEnd(end);
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
