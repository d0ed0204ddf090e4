import { BlockList, isIP } from 'node:net';
import { KubelingError } from '../../lib/index.ts';
import type { KubeContext } from '../kubeconfig/kubeconfig.ts';

export type ProxyEnvironment = Readonly<Record<string, string | undefined>>;

/**
 * Returns the proxy for the server of a context: from the kubeconfig, or else from the environment;
 * undefined for a direct connection.
 */
export function proxyFor({ cluster }: Pick<KubeContext, 'cluster'>, env: ProxyEnvironment): URL | undefined {
  if (cluster.proxyUrl !== undefined) return cluster.proxyUrl;
  const name = cluster.server.protocol === 'https:' ? 'HTTPS_PROXY' : 'HTTP_PROXY';
  const written = either(env, name);
  if (written === undefined || isExempt(cluster.server, either(env, 'NO_PROXY') ?? '')) return undefined;
  const url = URL.parse(written.includes('://') ? written : `http://${written}`);
  if (url !== null && /^https?:$/.test(url.protocol)) return url;
  throw new KubelingError(
    'CONFIG_INVALID',
    `Cannot use the proxy of ${name} as it must be a URL with http:// or https://`,
  );
}

/** Reads an environment variable in upper or lower case; both spellings are common. */
function either(env: ProxyEnvironment, name: string): string | undefined {
  return env[name] || env[name.toLowerCase()] || undefined;
}

/**
 * Parses NO_PROXY as Go programs do: names with their subdomains, addresses, address ranges, `*`,
 * each with or without a port.
 */
export function isExempt(server: URL, noProxy: string): boolean {
  const host = server.hostname.replace(/^\[|\]$/g, '').toLowerCase();
  if (host === 'localhost' || isLoopback(host)) return true;
  const port = server.port || (server.protocol === 'https:' ? '443' : '80');
  const entries = noProxy.split(',').map((entry) => entry.trim().toLowerCase());
  return entries.some((entry) => entry !== '' && isMatch(entry, host, port));
}

function isLoopback(host: string): boolean {
  return host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
}

function isMatch(entry: string, host: string, port: string): boolean {
  if (entry === '*') return true;
  if (entry.includes('/')) return isInRange(entry, host);
  const { name, wantedPort } = splitPort(entry);
  if (wantedPort !== undefined && wantedPort !== port) return false;
  if (isIP(name) !== 0 || isIP(host) !== 0) return name === host;
  const suffix = name.replace(/^\*/, '');
  // An entry with a leading dot matches subdomains only.
  return suffix.startsWith('.') ? host.endsWith(suffix) : host === suffix || host.endsWith(`.${suffix}`);
}

function splitPort(entry: string): { readonly name: string; readonly wantedPort: string | undefined } {
  const bracketed = /^\[(.+)\](?::(\d+))?$/.exec(entry);
  const plain = /^([^:]+):(\d+)$/.exec(entry);
  const match = bracketed ?? plain;
  return match === null
    ? { name: entry, wantedPort: undefined }
    : { name: match[1] ?? '', wantedPort: match[2] };
}

function isInRange(entry: string, host: string): boolean {
  const [base = '', bits = ''] = entry.split('/');
  const family = isIP(base);
  if (family === 0 || isIP(host) !== family || !/^\d{1,3}$/.test(bits)) return false;
  if (Number(bits) > (family === 4 ? 32 : 128)) return false;
  const type = family === 4 ? 'ipv4' : 'ipv6';
  const range = new BlockList();
  range.addSubnet(base, Number(bits), type);
  return range.check(host, type);
}
