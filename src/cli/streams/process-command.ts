import type { Readable, Writable } from 'node:stream';
import {
  abortable,
  boolFlag,
  type Clock,
  cancelledError,
  errnoOf,
  KubelingError,
  LinkedController,
  onAbort,
  stringFlag,
  withDeadline,
  writeAll,
} from '../../lib/index.ts';
import type { Pod } from '../../pods/index.ts';
import type { SpdyConnection } from '../../protocols/spdy/index.ts';
import {
  openRemoteStreams,
  type RemoteExit,
  type RemoteStreams,
  type RequestedStreams,
  readRemoteExit,
  remoteCommandProtocol,
} from '../../server/index.ts';
import { type CommandContext, exitCodes } from '../command.ts';
import { kubeletFlags } from '../kubelet-port.ts';
import type { ChosenContainer } from './choose-pod.ts';
import { whyNotRunning } from './choose-pod.ts';
import type { KubeletClient } from './kubelet-client.ts';
import { outputClosed, rawMode, type Stdio, watchSize } from './stdio.ts';

export const processFlags = {
  stdin: { kind: boolFlag, short: 'i', help: 'Pass standard input to the container.' },
  tty: { kind: boolFlag, short: 't', help: 'Standard input is a terminal; allocate one for the process.' },
  container: {
    kind: stringFlag,
    short: 'c',
    help: "The container; by default the one of the pod's default-container annotation, or its first.",
  },
  namespace: { kind: stringFlag, short: 'n', help: 'The namespace of the pod; any by default.' },
  ...kubeletFlags,
};

export interface ProcessCall {
  readonly verb: 'exec' | 'attach';
  readonly pod: Pod;
  readonly container: ChosenContainer;
  readonly command: readonly string[];
  readonly streams: RequestedStreams;
  readonly terminal: 'raw' | 'as-is';
}

/**
 * Opens the streams of a process, connects them to the standard streams, and returns the exit code
 * of the process.
 */
export async function runProcess(
  kubelet: KubeletClient,
  call: ProcessCall,
  context: CommandContext,
): Promise<number> {
  if (call.container.notice !== undefined) context.stderr.write(`${call.container.notice}\n`);
  const connection = await open(kubelet, call, context.signal);
  const closed = outputClosed(stdioOf(context));
  using stop = new LinkedController(context.signal);
  using _closed = onAbort(closed, () => stop.abort(cancelledError('The output is closed')));
  try {
    const end = await runSession(
      connection,
      stdioOf(context),
      { ...call, clock: context.clock },
      stop.signal,
    );
    if (end.kind === 'exited') return end.code;
    context.stderr.write(`kubeling ${call.verb}: ${end.message}\n`);
    return exitCodes.failed;
  } catch (error) {
    // The reader has closed the output, as in `| head`: this is not a failure.
    if (!closed.aborted || context.signal.aborted) throw error;
    return exitCodes.done;
  }
}

/** Opens the streams; adds the container status to the error if the kubelet denied them. */
async function open(kubelet: KubeletClient, call: ProcessCall, signal: AbortSignal): Promise<SpdyConnection> {
  try {
    return await kubelet.open(pathOf(call), remoteCommandProtocol, signal);
  } catch (error) {
    const why = whyNotRunning(call.pod, call.container.name);
    if (why === undefined || !(error instanceof KubelingError && error.code === 'STREAM_REFUSED'))
      throw error;
    throw new KubelingError(error.code, `${error.message}; ${why}`, { cause: error.cause });
  }
}

export function stdioOf({ stdio }: CommandContext): Stdio {
  if (stdio === undefined)
    throw new KubelingError('BUG', 'The standard streams are not available to the command');
  return stdio();
}

function pathOf({ verb, pod: { metadata }, container, command, streams }: ProcessCall): string {
  const query = new URLSearchParams(command.map((word) => ['command', word]));
  if (streams.stdin) query.set('input', '1');
  if (streams.stdout) query.set('output', '1');
  if (streams.stderr) query.set('error', '1');
  if (streams.tty) query.set('tty', '1');
  const parts = [metadata.namespace, metadata.name, container.name].map(encodeURIComponent);
  return `/${verb}/${parts.join('/')}?${query}`;
}

export interface SessionOptions {
  readonly clock: Clock;
  readonly streams: RequestedStreams;
  /** Whether the local terminal is switched to raw mode. */
  readonly terminal: 'raw' | 'as-is';
}

/** The size limit of the exit status, larger than any Status object. */
const maxEndBytes = 1 << 20;
/**
 * How long to wait for the exit status after the output has ended: a runtime that blocks on unread
 * input never sends it.
 */
const endWithinMs = 5_000;

/**
 * Connects the standard streams to a process in a container until it exits; returns how it exited.
 */
export async function runSession(
  connection: SpdyConnection,
  stdio: Stdio,
  { clock, streams: requested, terminal }: SessionOptions,
  signal: AbortSignal,
): Promise<RemoteExit> {
  using streams = new DisposableStack();
  streams.use(connection);
  const remote = openRemoteStreams(connection, requested);
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
  const exitText = readAll(remote.error);
  const outputs = Promise.all([
    copy(remote.stdout, stdio.stdout, work.signal),
    copy(remote.stderr, stdio.stderr, work.signal),
  ]);
  const [end = ''] = await Promise.all([
    exitText,
    outputs.then(() => (remote.stdin === undefined ? exitText : soon(exitText, clock, work.signal))),
  ]).catch((cause) => {
    // A runtime that exits with unread input resets the connection, so ECONNRESET and EPIPE mean
    // that the exit status was lost.
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

async function soon(exitText: Promise<string>, clock: Clock, signal: AbortSignal): Promise<string> {
  try {
    return await withDeadline(
      { clock, ms: endWithinMs, what: 'get the exit status' },
      () => exitText,
      signal,
    );
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

/**
 * Copies standard input to the process, and closes the input of the process when standard input
 * ends.
 */
function feed(from: Stdio['stdin'], to: Writable): Disposable {
  from.pipe(to);
  return {
    [Symbol.dispose]() {
      from.unpipe(to);
      from.pause();
    },
  };
}
