import type { SpdyConnection, SpdyStream } from '../../protocols/spdy/index.ts';
/** The protocol of processes' streams in which a process's end is told as a Status. */
export const remoteCommandProtocol = 'v4.channel.k8s.io';
export const portForwardProtocol = 'portforward.k8s.io';

/** The streams of one process in a container. */
export interface RemoteStreams {
  /** How it ended: a Status in JSON, once. */
  readonly error: SpdyStream;
  readonly stdin: SpdyStream | undefined;
  readonly stdout: SpdyStream | undefined;
  readonly stderr: SpdyStream | undefined;
  /** Takes the size of the terminal as JSON, each time it changes. */
  readonly resize: SpdyStream | undefined;
}

/** The server waits for exactly these before it starts. */
export function openRemoteStreams(connection: SpdyConnection, wanted: RequestedStreams): RemoteStreams {
  const open = (streamType: string) => connection.open({ streamType });
  return {
    error: open('error'),
    stdin: wanted.stdin ? open('stdin') : undefined,
    stdout: wanted.stdout ? open('stdout') : undefined,
    stderr: wanted.stderr ? open('stderr') : undefined,
    resize: wanted.tty ? open('resize') : undefined,
  };
}

/** Names and values in turn. */
export function spdyUpgradeHeaders(protocol: string): readonly string[] {
  return ['Connection', 'Upgrade', 'Upgrade', 'SPDY/3.1', 'X-Stream-Protocol-Version', protocol];
}

export type RemoteExit =
  | { readonly kind: 'exited'; readonly code: number }
  | { readonly kind: 'failed'; readonly message: string };

interface ExitStatus {
  readonly status?: string;
  readonly message?: string;
  readonly reason?: string;
  readonly details?: { readonly causes?: readonly { readonly reason?: string; readonly message?: string }[] };
}

/** What the error stream says of how the process ended. */
export function readRemoteExit(text: string): RemoteExit {
  const status = parse(text);
  if (status === undefined) return { kind: 'failed', message: `it ended without a word of how: ${text}` };
  if (status.status === 'Success') return { kind: 'exited', code: 0 };
  if (status.reason === 'NonZeroExitCode') {
    const cause = status.details?.causes?.find(({ reason }) => reason === 'ExitCode');
    const code = Number(cause?.message);
    if (Number.isInteger(code)) return { kind: 'exited', code };
  }
  return { kind: 'failed', message: status.message ?? 'it failed' };
}

function parse(text: string): ExitStatus | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Which of a process's streams a client wants. */
export interface RequestedStreams {
  readonly stdin: boolean;
  readonly stdout: boolean;
  readonly stderr: boolean;
  readonly tty: boolean;
}

export type ReadQuery<T> =
  | { readonly kind: 'read'; readonly value: T }
  | { readonly kind: 'wrong'; readonly message: string };

export function readRequestedStreams(query: URLSearchParams): ReadQuery<RequestedStreams> {
  const asks = (name: string) => query.get(name) === '1';
  const tty = asks('tty');
  // A terminal has one output, into which the process's errors go too.
  const wanted = { stdin: asks('input'), stdout: asks('output'), stderr: asks('error') && !tty, tty };
  if (wanted.stdin || wanted.stdout || wanted.stderr) return { kind: 'read', value: wanted };
  return { kind: 'wrong', message: 'you must specify at least 1 of stdin, stdout, stderr' };
}

/** Ports a client of a WebSocket names beforehand: repeated, or with commas between them. */
export function readPorts(query: URLSearchParams): ReadQuery<readonly number[]> {
  const written = query.getAll('port').flatMap((each) => each.split(','));
  if (written.length === 0) return { kind: 'wrong', message: 'query parameter "port" is required' };
  const wrong = written.find((each) => !isPort(each));
  if (wrong === undefined) return { kind: 'read', value: written.map(Number) };
  return {
    kind: 'wrong',
    message: `query parameter "port" must be a number from 1 to 65535: it is ${JSON.stringify(wrong)}`,
  };
}

function isPort(text: string): boolean {
  return /^\d{1,5}$/.test(text) && Number(text) >= 1 && Number(text) <= 65_535;
}
