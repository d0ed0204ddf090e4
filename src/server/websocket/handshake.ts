import { createHash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { type Response, text } from '../router.ts';

/** By RFC 6455, joined to the client's key to show that its wish was understood. */
const acceptSuffix = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';

export function isWebSocket(headers: IncomingHttpHeaders): boolean {
  return headers.upgrade?.toLowerCase() === 'websocket';
}

/** The protocols the client offers to speak inside the WebSocket, best first. */
export function offeredProtocols(headers: IncomingHttpHeaders): readonly string[] {
  return (headers['sec-websocket-protocol'] ?? '')
    .split(',')
    .map((each) => each.trim())
    .filter((each) => each !== '');
}

/** What is wrong with the client's wish, if anything. */
export function handshakeProblem({
  method,
  headers,
}: {
  readonly method: string;
  readonly headers: IncomingHttpHeaders;
}): Response | undefined {
  if (method !== 'GET') return text(405, 'a WebSocket is asked for with GET');
  if (headers['sec-websocket-version'] !== '13') {
    return {
      ...text(426, 'the version of WebSocket must be 13'),
      headers: { 'Sec-WebSocket-Version': '13' },
    };
  }
  const key = headers['sec-websocket-key'] ?? '';
  if (!/^[A-Za-z0-9+/]{22}==$/.test(key))
    return text(400, 'the key of the WebSocket must be 16 bytes in base64');
  return undefined;
}

/** The headers that grant it, names and values in turn. */
export function acceptHeaders(headers: IncomingHttpHeaders, protocol: string): readonly string[] {
  const accept = createHash('sha1').update(`${headers['sec-websocket-key']}${acceptSuffix}`).digest('base64');
  // Who offers no protocol is given none.
  const spoken = protocol === '' ? [] : ['Sec-WebSocket-Protocol', protocol];
  return ['Upgrade', 'websocket', 'Connection', 'Upgrade', 'Sec-WebSocket-Accept', accept, ...spoken];
}
