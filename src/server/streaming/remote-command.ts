import type { SpdyConnection, SpdyStream } from '../../protocols/spdy/index.ts';
import type { WantedStreams } from './stream-query.ts';

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
export function openRemoteStreams(connection: SpdyConnection, wanted: WantedStreams): RemoteStreams {
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

export type RemoteEnd =
  | { readonly kind: 'exited'; readonly code: number }
  | { readonly kind: 'failed'; readonly message: string };

interface EndStatus {
  readonly status?: string;
  readonly message?: string;
  readonly reason?: string;
  readonly details?: { readonly causes?: readonly { readonly reason?: string; readonly message?: string }[] };
}

/** What the error stream says of how the process ended. */
export function readRemoteEnd(text: string): RemoteEnd {
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

function parse(text: string): EndStatus | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}
