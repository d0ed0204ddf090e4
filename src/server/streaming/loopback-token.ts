import { timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { bearerProtocol } from '../auth/credentials.ts';
import type { Gate } from '../auth/index.ts';
import { text } from '../router.ts';
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

/** Lets through who knows the token, and nobody else. */
export function loopbackGate(token: string): Gate {
  return {
    admit: async ({ headers }) => (knowsToken(headers, token) ? undefined : text(401, 'Unauthorized')),
  };
}

function bearerOf(headers: IncomingHttpHeaders): string | undefined {
  const header = /^Bearer\s+(\S+)$/i.exec(headers.authorization ?? '')?.[1];
  if (header !== undefined) return header;
  const offered = offeredProtocols(headers).find((each) => each.startsWith(bearerProtocol));
  return offered === undefined
    ? undefined
    : Buffer.from(offered.slice(bearerProtocol.length), 'base64url').toString();
}
