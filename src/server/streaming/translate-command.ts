import type { Readable, Writable } from 'node:stream';
import { type Clock, describeError, writeAll } from '../../lib/index.ts';
import { SpdyConnection } from '../../protocols/spdy/index.ts';
import { serveWebSocket, type WebSocketSession } from '../../protocols/upgrade/index.ts';
import type { MessagePiece } from '../../protocols/websocket/index.ts';
import type { Response, UpgradeCall } from '../router.ts';
import type { RequestedStreams } from './remote-command.ts';
import {
  openRemoteStreams,
  type RemoteStreams,
  readRemoteExit,
  remoteCommandProtocol,
  spdyUpgradeHeaders,
} from './remote-command.ts';
import { handshakeRefusal, refusal, type TunnelDeps } from './tunnel.ts';

/** The WebSocket protocol that can close a single stream. Runtimes do not support this protocol. */
export const closingProtocol = 'v5.channel.k8s.io';

const channels = { stdin: 0, stdout: 1, stderr: 2, error: 3, resize: 4, close: 255 } as const;

/**
 * When the streams of an attached process close without data within this time, the process had
 * exited before the attach.
 */
const tooLateMs = 1_000;

export interface CommandToTranslate {
  readonly url: URL;
  readonly streams: RequestedStreams;
  /** URL of a separate attach for stderr; undefined when stderr is not attached separately. */
  readonly stderrUrl: URL | undefined;
  /**
   * Whether the request starts a new process or attaches to a process that may already have exited.
   */
  readonly process: 'new' | 'attached';
  /**
   * Whether the session waits for the end of stderr (`listen`) or not (`leave`) after the client's
   * input has ended.
   */
  readonly afterInput: AfterInput;
}

export type AfterInput = 'listen' | 'leave';

/** Serves a WebSocket client through SPDY streams, which every runtime supports. */
export async function translateCommand(
  call: UpgradeCall,
  { url, streams: requested, stderrUrl, process, afterInput }: CommandToTranslate,
  deps: TunnelDeps,
  signal: AbortSignal,
): Promise<Response | undefined> {
  const problem = handshakeRefusal(call);
  if (problem !== undefined) return problem;
  const main = await connect(url, deps, signal);
  if (main.kind === 'refused') return main.response;
  using connection = main.connection;
  const apart = stderrUrl === undefined ? undefined : await connect(stderrUrl, deps, signal);
  if (apart?.kind === 'refused') return apart.response;
  using stderrConnection = apart?.connection;
  const clock = process === 'attached' ? deps.clock : undefined;
  const work = (session: WebSocketSession) => {
    if (stderrConnection === undefined) {
      return translate(session, openRemoteStreams(connection, requested), { clock, afterInput: 'listen' });
    }
    // Stderr is attached before the other streams, so that no output is missed.
    const { stderr } = openRemoteStreams(stderrConnection, onlyStderr);
    const streams = { ...openRemoteStreams(connection, { ...requested, stderr: false }), stderr };
    return translate(session, streams, { clock, afterInput });
  };
  await serveWebSocket({ ...call, headers: call.request.headers }, closingProtocol, deps, work, signal);
  return undefined;
}

export const onlyStderr: RequestedStreams = { stdin: false, stdout: false, stderr: true, tty: false };

type Connected =
  | { readonly kind: 'connected'; readonly connection: SpdyConnection }
  | { readonly kind: 'refused'; readonly response: Response };

async function connect(url: URL, { dial }: TunnelDeps, signal: AbortSignal): Promise<Connected> {
  const headers = spdyUpgradeHeaders(remoteCommandProtocol);
  const response = await dial({ url, method: 'POST', headers }, signal);
  if (response.kind === 'answered') return { kind: 'refused', response: refusal(response) };
  return { kind: 'connected', connection: new SpdyConnection(response.socket, response.head) };
}

interface TranslateOptions {
  /**
   * Clock that measures whether the process exited before the attach; undefined for a new process.
   */
  readonly clock: Clock | undefined;
  readonly afterInput: AfterInput;
}

async function translate(
  session: WebSocketSession,
  streams: RemoteStreams,
  { clock, afterInput }: TranslateOptions,
): Promise<void> {
  const { connection, signal } = session;
  // An empty message is sent first, because clients treat the first message as the sign that the
  // process is running.
  const lowest = streams.stdout ? channels.stdout : streams.stderr ? channels.stderr : channels.error;
  await connection.send(signal, Buffer.of(lowest));
  const written = { bytes: 0 };
  const left = readClient(session, streams, written);
  const stdout = copy(session, channels.stdout, streams.stdout, written);
  const stderr = copy(session, channels.stderr, streams.stderr, written);
  const output = Promise.all([stdout, stderr]);
  const end =
    clock === undefined
      ? copyExit(session, streams.error)
      : copyAttachedExit(session, streams.error, { clock, output, written });
  const result = Promise.all([stdout, end]).then(async () => {
    const isInputOver = streams.stdin?.writableEnded ?? false;
    if (!isInputOver || afterInput === 'listen') await stderr;
  });
  for (const each of [left, output, result]) each.catch(() => {});
  // The session ends when the process exits, or when the client disconnects.
  await Promise.race([result, left]);
}

interface ByteCount {
  /** Number of bytes of input and output that were copied. */
  bytes: number;
}

async function copy(
  session: WebSocketSession,
  channel: number,
  from: Readable | undefined,
  written?: ByteCount,
): Promise<void> {
  if (from === undefined) return;
  for await (const chunk of from as AsyncIterable<Buffer>) {
    session.touch();
    if (written !== undefined) written.bytes += chunk.length;
    await session.connection.send(session.signal, Buffer.of(channel), chunk);
  }
}

/** Sends the exit status of the process to the client, or an error when it cannot be read. */
async function copyExit(session: WebSocketSession, error: Readable): Promise<void> {
  try {
    await copy(session, channels.error, error);
  } catch (cause) {
    await sendFailure(session, `error executing command in container: ${describeError(cause)}`);
  }
}

interface Attached {
  readonly clock: Clock;
  readonly output: Promise<unknown>;
  readonly written: ByteCount;
}

/**
 * When the process of an attach has just exited, the runtime still reports success, and the output
 * of the process would be lost. The client gets an error instead, because a client such as `kubectl
 * run -i` then falls back to the container log.
 */
async function copyAttachedExit(
  session: WebSocketSession,
  error: Readable,
  { clock, output, written }: Attached,
): Promise<void> {
  const sinceMs = clock.monotonicMs();
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of error as AsyncIterable<Buffer>) chunks.push(chunk);
    const status = Buffer.concat(chunks);
    const isShort = clock.monotonicMs() - sinceMs < tooLateMs;
    const { kind } = readRemoteExit(status.toString());
    if (kind === 'exited' && isShort && written.bytes === 0) {
      // Output may still be in flight after the exit, so its end is awaited for a limited time.
      await Promise.race([output, clock.sleep(tooLateMs, session.signal)]);
      if (written.bytes === 0) {
        await sendFailure(session, 'the container ended before it could be attached to');
        return;
      }
    }
    if (status.length > 0) await session.connection.send(session.signal, Buffer.of(channels.error), status);
  } catch (cause) {
    await sendFailure(session, `error attaching to container: ${describeError(cause)}`);
  }
}

async function sendFailure({ connection, signal }: WebSocketSession, message: string): Promise<void> {
  const status = { metadata: {}, status: 'Failure', message, reason: 'InternalError', code: 500 };
  await connection.send(signal, Buffer.of(channels.error), Buffer.from(JSON.stringify(status)));
}

async function readClient(
  { connection, signal, touch }: WebSocketSession,
  streams: RemoteStreams,
  written: ByteCount,
): Promise<void> {
  let channel: number | undefined;
  for await (const piece of connection.messages()) {
    touch();
    const bytes = piece.first ? piece.bytes.subarray(1) : piece.bytes;
    if (piece.first) channel = channelOf(piece, channel);
    if (channel === channels.stdin) written.bytes += bytes.length;
    if (channel === channels.close) closeNamed(streams, bytes[0]);
    else await pass(inputOf(streams, channel), bytes, signal);
    if (piece.last) channel = undefined;
  }
}

/**
 * Returns the channel of a message, which is its first byte. A message whose first piece is empty
 * keeps the channel of the previous message.
 */
function channelOf({ bytes }: MessagePiece, before: number | undefined): number | undefined {
  return bytes[0] ?? before;
}

function inputOf(streams: RemoteStreams, channel: number | undefined): Writable | undefined {
  return channel === channels.stdin
    ? streams.stdin
    : channel === channels.resize
      ? streams.resize
      : undefined;
}

function closeNamed(streams: RemoteStreams, channel: number | undefined): void {
  inputOf(streams, channel)?.end();
}

/** Writes input to the process; drops input after the process closed its stdin or exited. */
async function pass(to: Writable | undefined, bytes: Buffer, signal: AbortSignal): Promise<void> {
  if (to === undefined || bytes.length === 0 || !to.writable) return;
  await writeAll(to, bytes, signal).catch((error) => {
    if (signal.aborted) throw error;
  });
}
