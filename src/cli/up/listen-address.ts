import { isIP } from 'node:net';
import { KubelingError } from '../../lib/index.ts';

export interface ListenAddress {
  readonly host: string;
  readonly port: number;
}

/**
 * The default port of the embedded API. Differs from the ports of other local clusters, because
 * kubectl caches API types by address, and from well-known ports.
 */
export const defaultApiPort = 7443;
const loopback = '127.0.0.1';

/**
 * Parses `port`, `address` or `address:port`; an IPv6 address with a port is in brackets. Undefined
 * means the default.
 */
export function parseListen(text: string | undefined): ListenAddress {
  if (text === undefined || text === '') return { host: loopback, port: defaultApiPort };
  if (/^\d+$/.test(text)) return { host: loopback, port: portOf(text, text) };
  if (isIP(text) !== 0) return { host: text, port: defaultApiPort };
  const [, bracketed, plain, port = ''] = /^(?:\[([^\]]+)\]|([^:]*)):(\d+)$/.exec(text) ?? [];
  const host = bracketed ?? plain;
  if (host === undefined || isIP(host) === 0)
    throw wrong(text, 'an IP address, a port, or both with a colon between');
  return { host, port: portOf(port, text) };
}

function portOf(text: string, given: string): number {
  const port = Number(text);
  if (!Number.isInteger(port) || port > 65_535) throw wrong(given, 'a port up to 65535');
  return port;
}

function wrong(text: string, what: string): KubelingError {
  return new KubelingError(
    'CLI_USAGE',
    `Cannot use these flags: --listen must be ${what}: current value is ${JSON.stringify(text)}`,
  );
}
