import { realpath, stat } from 'node:fs/promises';
import { createConnection } from 'node:net';
import { type Clock, describeError, withDeadline } from '../lib/index.ts';

/** The default CRI sockets of common runtimes. */
export const usualRuntimeSockets = [
  '/run/containerd/containerd.sock',
  '/var/run/containerd/containerd.sock',
  '/run/crio/crio.sock',
  '/var/run/crio/crio.sock',
  '/run/cri-dockerd.sock',
  '/var/run/cri-dockerd.sock',
] as const;

export type SocketState =
  | { readonly path: string; readonly state: 'absent' }
  | { readonly path: string; readonly state: 'silent'; readonly why: string }
  | { readonly path: string; readonly state: 'accepting' };

export interface RuntimeSocketOptions {
  readonly clock: Clock;
  /** The socket paths to check, in order of preference; the default sockets if undefined. */
  readonly paths?: readonly string[];
}

const connectDeadlineMs = 2000;

/**
 * Returns the state of each socket, without duplicates. The process that listens may be any
 * program.
 */
export async function findRuntimeSockets(
  { clock, paths = usualRuntimeSockets }: RuntimeSocketOptions,
  signal: AbortSignal,
): Promise<readonly SocketState[]> {
  const checked: SocketState[] = [];
  const places = new Set<string>();
  for (const path of paths) {
    const place = await realpath(path).catch(() => path);
    if (places.has(place)) continue;
    places.add(place);
    checked.push(await socketState(path, clock, signal));
  }
  return checked;
}

export async function socketState(path: string, clock: Clock, signal: AbortSignal): Promise<SocketState> {
  const found = await stat(path).catch(() => undefined);
  if (found === undefined) return { path, state: 'absent' };
  if (!found.isSocket()) return { path, state: 'silent', why: 'it is not a socket' };
  try {
    const what = `connect to ${path}`;
    await withDeadline({ clock, ms: connectDeadlineMs, what }, (inner) => connect(path, inner), signal);
    return { path, state: 'accepting' };
  } catch (error) {
    signal.throwIfAborted();
    return { path, state: 'silent', why: describeError(error) };
  }
}

function connect(path: string, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = createConnection({ path, signal });
    socket.once('error', reject);
    socket.once('connect', () => {
      socket.destroy();
      resolve();
    });
  });
}
