import type { Duplex } from 'node:stream';
import { switchingProtocolsHead } from './headers.ts';
import { type RelayOptions, relay } from './relay.ts';
import type { GrantedUpgrade } from './request.ts';

/** The connection of a client whose request asks for an upgrade. */
export interface UpgradingClient {
  readonly socket: Duplex;
  /** Bytes that the client sent right behind its request. */
  readonly head: Uint8Array;
}

/**
 * Grants the client the upgrade that the backend granted, and relays bytes between the two until the streams end.
 * Call this after a 101 of the backend only: bytes behind a denied upgrade would reach the backend as a new request with
 * our credentials.
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
