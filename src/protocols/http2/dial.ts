import { connect, type Socket } from 'node:net';
import { ClientConnection, type ConnectionListener } from './client-connection.ts';

export type Address = { readonly path: string } | { readonly host: string; readonly port: number };

/** What one read takes from the socket at most. */
const readBytes = 64 << 10;

/**
 * Connects without encryption to a peer that is known to speak HTTP/2. Everything is read into one buffer, as making one
 * for each read costs more than the reading.
 */
export function dialHttp2(address: Address, listener: ConnectionListener): ClientConnection {
  const buffer = Buffer.allocUnsafeSlow(readBytes);
  const socket: Socket = connect({
    ...address,
    noDelay: true,
    onread: {
      buffer,
      callback(bytes) {
        connection.receive(buffer.subarray(0, bytes));
        return true;
      },
    },
  });
  const connection = new ClientConnection(socket, listener);
  return connection;
}
