import type { SpdyConnection, SpdyStream } from '../../protocols/spdy/index.ts';
/** The remote command protocol that reports the exit as a Status object. */
export const remoteCommandProtocol = 'v4.channel.k8s.io';
export const portForwardProtocol = 'portforward.k8s.io';

/** The streams of one process in a container. */
export interface RemoteStreams {
  /** Receives the exit of the process once, as a Status object in JSON. */
  readonly error: SpdyStream;
  readonly stdin: SpdyStream | undefined;
  readonly stdout: SpdyStream | undefined;
  readonly stderr: SpdyStream | undefined;
  /** Stream that carries the size of the terminal as JSON after each change. */
  readonly resize: SpdyStream | undefined;
}

/** Opens the SPDY streams of a process: exactly those that the server waits for. */
export function openRemoteStreams(connection: SpdyConnection, requested: RequestedStreams): RemoteStreams {
  const open = (streamType: string) => connection.open({ streamType });
  return {
    error: open('error'),
    stdin: requested.stdin ? open('stdin') : undefined,
    stdout: requested.stdout ? open('stdout') : undefined,
    stderr: requested.stderr ? open('stderr') : undefined,
    resize: requested.tty ? open('resize') : undefined,
  };
}

/** Headers of a SPDY upgrade request, as alternating names and values. */
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

/** Parses the Status object of the error stream. */
export function readRemoteExit(text: string): RemoteExit {
  const status = parse(text);
  if (status === undefined) return { kind: 'failed', message: `the exit status is not valid: ${text}` };
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

/** The streams of a process that a client requests. */
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
  const isRequested = (name: string) => query.get(name) === '1';
  const tty = isRequested('tty');
  // With a terminal, stdout includes stderr.
  const requested = {
    stdin: isRequested('input'),
    stdout: isRequested('output'),
    stderr: isRequested('error') && !tty,
    tty,
  };
  if (requested.stdin || requested.stdout || requested.stderr) return { kind: 'read', value: requested };
  return { kind: 'wrong', message: 'you must specify at least 1 of stdin, stdout, stderr' };
}

/** Parses the ports in the query of a WebSocket request: repeated, or separated by commas. */
export function readPorts(query: URLSearchParams): ReadQuery<readonly number[]> {
  const values = query.getAll('port').flatMap((each) => each.split(','));
  if (values.length === 0) return { kind: 'wrong', message: 'query parameter "port" is required' };
  const invalid = values.find((each) => !isPort(each));
  if (invalid === undefined) return { kind: 'read', value: values.map(Number) };
  return {
    kind: 'wrong',
    message: `query parameter "port" must be a number from 1 to 65535: it is ${JSON.stringify(invalid)}`,
  };
}

function isPort(text: string): boolean {
  return /^\d{1,5}$/.test(text) && Number(text) >= 1 && Number(text) <= 65_535;
}
