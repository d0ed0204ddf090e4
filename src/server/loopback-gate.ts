import { timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { BlockList, isIP } from 'node:net';
import { bearerProtocolPrefix } from '../protocols/upgrade/index.ts';
import { offeredProtocols } from '../protocols/websocket/index.ts';
import type { Gate } from './auth/index.ts';
import { choose, type Response, type RoutePattern, text } from './router.ts';

export interface LoopbackGateOptions {
  readonly token: string;
  /** Routes that need no token: the health endpoints. */
  readonly open: readonly RoutePattern[];
  /**
   * Names of the node that clients may use in the Host header besides `localhost` and loopback
   * addresses.
   */
  readonly names: readonly string[];
}

const loopbackAddresses = new BlockList();
loopbackAddresses.addSubnet('127.0.0.0', 8);
loopbackAddresses.addAddress('::1', 'ipv6');

/**
 * Admits clients with the token, and every local client to the open routes. Every user of the
 * machine, every pod on the host network and every web page in a browser can connect to loopback;
 * only root can read the token file.
 */
export function loopbackGate({ token, open, names }: LoopbackGateOptions): Gate {
  return {
    async admit({ method, path, headers }) {
      const foreign = rejectForeign(headers, names);
      if (foreign !== undefined) return { connection: 'anonymous', rejection: foreign };
      if (hasToken(headers, token)) return { connection: 'trusted' };
      if (choose(open, method, path).kind === 'found') return { connection: 'anonymous' };
      return { connection: 'anonymous', rejection: text(401, 'Unauthorized') };
    },
  };
}

/**
 * Admits every client whose Host and Origin headers name this machine, which is enough for a health
 * endpoint on loopback.
 */
export function localGate(names: readonly string[]): Gate {
  return {
    admit: async ({ headers }) => ({ connection: 'anonymous', rejection: rejectForeign(headers, names) }),
  };
}

export function isLoopbackAddress(host: string): boolean {
  const family = isIP(host);
  return family !== 0 && loopbackAddresses.check(host, family === 6 ? 'ipv6' : 'ipv4');
}

/**
 * Maximum length of a Host header that is parsed: a DNS name has at most 253 characters, and
 * parsing a longer text may be slow.
 */
const maxHostLength = 512;

/**
 * Checks Host and Origin headers against DNS rebinding: a web page whose name resolves to 127.0.0.1
 * sends its name as Host, and a cross-origin page sends its Origin. Other clients send no Origin.
 */
function rejectForeign(
  { host, origin }: IncomingHttpHeaders,
  names: readonly string[],
): Response | undefined {
  if (host !== undefined && host.length > maxHostLength)
    return text(403, 'Forbidden: the Host header does not name this node\n');
  if (host !== undefined && !isOwnHost(host, names))
    return text(403, `Forbidden: the Host header ${JSON.stringify(host)} does not name this node\n`);
  if (origin !== undefined && (origin.length > 2 * maxHostLength || URL.parse(origin)?.host !== host))
    return text(
      403,
      `Forbidden: requests of the origin ${JSON.stringify(origin.slice(0, maxHostLength))} are not served\n`,
    );
  return undefined;
}

function isOwnHost(host: string, names: readonly string[]): boolean {
  const hostname = URL.parse(`http://${host}`)?.hostname.replace(/^\[(.*)\]$/, '$1');
  if (hostname === undefined) return false;
  return hostname === 'localhost' || isLoopbackAddress(hostname) || names.includes(hostname);
}

function hasToken(headers: IncomingHttpHeaders, token: string): boolean {
  const given = bearerOf(headers);
  if (given === undefined) return false;
  const [a, b] = [Buffer.from(given), Buffer.from(token)];
  return a.length === b.length && timingSafeEqual(a, b);
}

function bearerOf(headers: IncomingHttpHeaders): string | undefined {
  const header = /^Bearer\s+(\S+)$/i.exec(headers.authorization ?? '')?.[1];
  if (header !== undefined) return header;
  const offered = offeredProtocols(headers).find((each) => each.startsWith(bearerProtocolPrefix));
  return offered === undefined
    ? undefined
    : Buffer.from(offered.slice(bearerProtocolPrefix.length), 'base64url').toString();
}
