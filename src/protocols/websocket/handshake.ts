import { createHash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';

/** The GUID of RFC 6455 that is appended to the client's key to compute Sec-WebSocket-Accept. */
const acceptSuffix = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';

export function isWebSocket(headers: IncomingHttpHeaders): boolean {
  return headers.upgrade?.toLowerCase() === 'websocket';
}

/** The WebSocket subprotocols that the client offers, in its order of preference. */
export function offeredProtocols(headers: IncomingHttpHeaders): readonly string[] {
  return (headers['sec-websocket-protocol'] ?? '')
    .split(',')
    .map((each) => each.trim())
    .filter((each) => each !== '');
}

/** The HTTP response to a rejected handshake, with the reason. */
export interface HandshakeRefusal {
  readonly status: number;
  readonly message: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Validates the client's opening handshake; undefined when it can be accepted. */
export function handshakeProblem({
  method,
  headers,
}: {
  readonly method: string;
  readonly headers: IncomingHttpHeaders;
}): HandshakeRefusal | undefined {
  if (method !== 'GET') return { status: 405, message: 'a WebSocket is opened with GET' };
  if (headers['sec-websocket-version'] !== '13') {
    return {
      status: 426,
      message: 'the version of WebSocket must be 13',
      headers: { 'Sec-WebSocket-Version': '13' },
    };
  }
  const key = headers['sec-websocket-key'] ?? '';
  if (!/^[A-Za-z0-9+/]{22}==$/.test(key))
    return { status: 400, message: 'the key of the WebSocket must be 16 bytes in base64' };
  return undefined;
}

/** The headers of the response that accepts the handshake, as alternating names and values. */
export function acceptHeaders(headers: IncomingHttpHeaders, protocol: string): readonly string[] {
  const accept = createHash('sha1').update(`${headers['sec-websocket-key']}${acceptSuffix}`).digest('base64');
  // If the client offers no subprotocol, the response contains no subprotocol.
  const spoken = protocol === '' ? [] : ['Sec-WebSocket-Protocol', protocol];
  return ['Upgrade', 'websocket', 'Connection', 'Upgrade', 'Sec-WebSocket-Accept', accept, ...spoken];
}
