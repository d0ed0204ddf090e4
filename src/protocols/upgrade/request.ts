import { once } from 'node:events';
import type { ClientRequest, IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { type Clock, LinkedController, onAbort, withDeadline } from '../../lib/index.ts';

const keepAliveMs = 30_000;

/**
 * The response to a request that may request an upgrade. The caller owns the socket, or the body of
 * the response.
 */
export type BackendResponse =
  | GrantedUpgrade
  | { readonly kind: 'answered'; readonly response: IncomingMessage };

export interface GrantedUpgrade {
  readonly kind: 'upgraded';
  readonly socket: Duplex;
  /** Bytes of the upgraded protocol that arrived with the head of the response. */
  readonly head: Uint8Array;
  readonly rawHeaders: readonly string[];
}

/**
 * Sends the request, with the body if there is one, and resolves with the head of the response. An
 * abort before that destroys the request. The listener on the signal is always removed.
 */
export async function sendRequest(
  request: ClientRequest,
  body: IncomingMessage | undefined,
  signal: AbortSignal,
): Promise<BackendResponse> {
  using _link = onAbort(signal, (reason) => request.destroy(reason as Error));
  const response = await new Promise<BackendResponse>((resolve, reject) => {
    request.on('error', reject);
    request.on('response', (message) => {
      message.on('error', () => {});
      resolve({ kind: 'answered', response: message });
    });
    request.on('upgrade', (message, socket: Socket, head) => {
      socket.setNoDelay(true);
      socket.setKeepAlive(true, keepAliveMs);
      socket.on('error', () => {});
      resolve({ kind: 'upgraded', socket, head, rawHeaders: message.rawHeaders });
    });
    if (body === undefined) request.end();
    else body.pipe(request);
  });
  if (signal.aborted) {
    // The caller no longer waits for the response, so the connection is closed here.
    request.destroy();
    signal.throwIfAborted();
  }
  return response;
}

/**
 * Like `sendRequest`, but also fails when the connection is not established within a deadline; the
 * response may take longer.
 */
export async function sendWithConnectDeadline(
  request: ClientRequest,
  body: IncomingMessage | undefined,
  { clock, ms }: { readonly clock: Clock; readonly ms: number },
  parent: AbortSignal,
): Promise<BackendResponse> {
  using sending = new LinkedController(parent);
  const response = sendRequest(request, body, sending.signal);
  response.catch(() => {});
  const connected = (inner: AbortSignal) => Promise.race([response, connection(request, inner)]);
  try {
    await withDeadline({ clock, ms, what: 'connect' }, connected, parent);
  } catch (error) {
    sending.abort(error);
    throw error;
  }
  return await response;
}

async function connection(request: ClientRequest, signal: AbortSignal): Promise<void> {
  const [socket] = (await once(request, 'socket', { signal })) as [Socket];
  const event = 'encrypted' in socket ? 'secureConnect' : 'connect';
  if (socket.connecting || event === 'secureConnect') await once(socket, event, { signal });
}
