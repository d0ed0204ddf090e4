import { timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { bearerProtocol } from '../auth/credentials.ts';
import { offeredProtocols } from '../websocket/index.ts';

/**
 * Whether the caller knows the token. On loopback every user of the machine, every pod on the network of the node and
 * every web page in a browser can connect; the token is in a file that only our own user can read.
 */
export function knowsToken(headers: IncomingHttpHeaders, token: string): boolean {
  const given = bearerOf(headers);
  if (given === undefined) return false;
  const [a, b] = [Buffer.from(given), Buffer.from(token)];
  return a.length === b.length && timingSafeEqual(a, b);
}

function bearerOf(headers: IncomingHttpHeaders): string | undefined {
  const header = /^Bearer\s+(\S+)$/i.exec(headers.authorization ?? '')?.[1];
  if (header !== undefined) return header;
  const offered = offeredProtocols(headers).find((each) => each.startsWith(bearerProtocol));
  return offered === undefined
    ? undefined
    : Buffer.from(offered.slice(bearerProtocol.length), 'base64url').toString();
}
