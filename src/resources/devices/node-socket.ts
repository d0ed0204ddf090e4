import { posix } from 'node:path';
import { type Logger, untilAborted } from '../../lib/index.ts';
import type { ServiceAdder } from '../../protocols/grpc/index.ts';
import type { DeviceHost } from './device-host.ts';

export interface NodeSocket {
  readonly host: Pick<DeviceHost, 'clear' | 'serve'>;
  readonly logger: Logger;
  /** Sockets that are left in it are removed. */
  readonly directory: string;
  /** Loads the server on the first connection. */
  readonly fill: (server: ServiceAdder) => Promise<void>;
}

/** Of the path of a unix socket. */
const longestPath = 107;

/** Answers other programs of the machine at `kubelet.sock` in a directory of its own, until the signal ends it. */
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
    logger.error('A call from the machine failed', error, { socket, path });
  await using _server = await host.serve(socket, { fill, failed });
  return await untilAborted(signal);
}
