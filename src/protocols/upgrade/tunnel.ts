import type { Duplex } from 'node:stream';
import { switchingProtocolsHead } from './headers.ts';
import { type RelayOptions, relay } from './relay.ts';
import type { GrantedUpgrade } from './request.ts';

/** The connection of a client that requests an upgrade. */
export interface UpgradingClient {
  readonly socket: Duplex;
  /** Bytes that the client sent directly after its request. */
  readonly head: Uint8Array;
}

/**
 * Sends the client the upgrade response of the backend, and relays bytes between the two until the
 * streams end. Must be called only after a 101 of the backend: bytes after a rejected upgrade would
 * reach the backend as a new request with this proxy's credentials.
 */
export async function tunnelUpgrade(
  client: UpgradingClient,
  backend: GrantedUpgrade,
  options: RelayOptions,
  signal: AbortSignal,
): Promise<void> {
  client.socket.write(switchingProtocolsHead(backend.rawHeaders));
  if (backend.head.length > 0) client.socket.write(backend.head);
  if (client.head.length > 0) backend.socket.write(client.head);
  await relay(client.socket, backend.socket, options, signal);
}
