import type { IncomingHttpHeaders } from 'node:http';
import { bearerProtocolPrefix } from '../../protocols/upgrade/index.ts';
import { isWebSocket, offeredProtocols } from '../../protocols/websocket/index.ts';

export type ShownToken =
  | { readonly kind: 'none' }
  | { readonly kind: 'token'; readonly token: string }
  | { readonly kind: 'malformed'; readonly why: string };

const none: ShownToken = { kind: 'none' };

/** The second word of an Authorization header whose first is Bearer, in any case. */
export function headerToken({ authorization = '' }: IncomingHttpHeaders): ShownToken {
  const [scheme = '', token = ''] = authorization.trim().split(' ', 2);
  return scheme.toLowerCase() === 'bearer' && token !== '' ? { kind: 'token', token } : none;
}

/**
 * The token among the protocols a WebSocket is offered. There must be another one besides: a server has to choose one
 * of the protocols, and this one it must not repeat.
 */
export function webSocketToken(headers: IncomingHttpHeaders): ShownToken {
  if (!isWebSocket(headers)) return none;
  const offered = offeredProtocols(headers);
  const tokens = offered.filter((each) => each.startsWith(bearerProtocolPrefix));
  const [first, ...more] = tokens;
  if (first === undefined) return none;
  if (more.length > 0) return malformed('only one token may be offered');
  if (offered.length === tokens.length) return malformed('another protocol must be offered beside the token');
  return decodeToken(first.slice(bearerProtocolPrefix.length));
}

function decodeToken(encoded: string): ShownToken {
  if (!/^[A-Za-z0-9_-]+$/.test(encoded)) return malformed('the token must be base64url without padding');
  const bytes = Buffer.from(encoded, 'base64url');
  const token = bytes.toString();
  if (!Buffer.from(token).equals(bytes)) return malformed('the token must be UTF-8');
  return { kind: 'token', token };
}

function malformed(why: string): ShownToken {
  return { kind: 'malformed', why };
}
