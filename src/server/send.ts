import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { nodeHttp } from '../lib/index.ts';
import { http2StreamOf } from './http2-server.ts';
import type { Response } from './router.ts';

/**
 * Sends the response, or the part that the client reads before it disconnects. Rejects when reading
 * the body fails.
 */
export async function send(outgoing: ServerResponse, response: Response, signal: AbortSignal): Promise<void> {
  if (outgoing.destroyed) return;
  const { status, contentType, headers, body } = response;
  const own = { 'content-type': contentType, 'x-content-type-options': 'nosniff' };
  const common = { ...overHttp2(outgoing, headers), ...own };
  if (typeof body === 'string') {
    outgoing.writeHead(status, { ...common, 'content-length': Buffer.byteLength(body) });
    outgoing.end(body);
    return;
  }
  outgoing.writeHead(status, common);
  outgoing.flushHeaders();
  await sendChunks(outgoing, body, signal);
}

/**
 * Sends a response over HTTP/2, which has no Connection header: a connection to be closed is closed
 * after the streams in flight.
 */
function overHttp2(outgoing: ServerResponse, headers: Response['headers'] = {}): Response['headers'] {
  const stream = http2StreamOf(outgoing);
  const { connection, ...rest } = headers;
  if (stream === undefined || connection === undefined) return headers;
  // The session is read now, because a finished stream no longer has one.
  const { session } = stream;
  if (connection === 'close') outgoing.once('close', () => session?.close());
  return rest;
}

async function sendChunks(
  outgoing: ServerResponse,
  body: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): Promise<void> {
  try {
    for await (const chunk of body) {
      if (signal.aborted) return;
      if (chunk.length > 0 && !outgoing.write(chunk)) await once(outgoing, 'drain', { signal });
    }
    outgoing.end();
  } catch (error) {
    // After a disconnect of the client the error is ignored: an iterable may throw the signal's
    // reason.
    if (!signal.aborted) throw error;
  }
}

/** Sends a complete response to a rejected upgrade request; the connection is closed after it. */
export function refuse(socket: Duplex, { status, contentType, headers = {}, body }: Response): void {
  const text = typeof body === 'string' ? body : '';
  const lines = [
    `HTTP/1.1 ${status} ${nodeHttp.STATUS_CODES[status] ?? ''}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    `content-type: ${contentType}`,
    'x-content-type-options: nosniff',
    `content-length: ${Buffer.byteLength(text)}`,
    'connection: close',
  ];
  socket.end(`${lines.join('\r\n')}\r\n\r\n${text}`, () => socket.destroy());
}
