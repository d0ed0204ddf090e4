import { posix } from 'node:path';
import { type Logger, untilAborted } from '../../lib/index.ts';
import type { ServiceAdder } from '../../protocols/grpc/index.ts';
import type { DeviceHost } from './device-host.ts';

export interface NodeSocket {
  readonly host: Pick<DeviceHost, 'clear' | 'serve'>;
  readonly logger: Logger;
  /** The directory of the socket; existing sockets in it are removed. */
  readonly directory: string;
  /** Adds the gRPC services; called at the first connection, because their code is loaded then. */
  readonly fill: (server: ServiceAdder) => Promise<void>;
}

/** The maximum length of a unix socket path in bytes. */
const longestPath = 107;

/**
 * Serves gRPC calls of other programs of the node at the socket `kubelet.sock` in the given
 * directory, until the signal is aborted.
 */
export async function serveNodeSocket(
  { host, logger, directory, fill }: NodeSocket,
  signal: AbortSignal,
): Promise<never> {
  const socket = posix.join(directory, 'kubelet.sock');
  await host.clear(directory);
  if (Buffer.byteLength(socket) > longestPath) {
    logger.warn('Socket path exceeds 107 bytes', { socket });
    return await untilAborted(signal);
  }
  const failed = (path: string, error: unknown) =>
    logger.error('Failed to serve a call on the node socket', error, { socket, path });
  await using _server = await host.serve(socket, { fill, failed });
  return await untilAborted(signal);
}
