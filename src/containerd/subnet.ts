import { isIPv4 } from 'node:net';
import { KubelingError } from '../lib/index.ts';

/** An IPv4 network: its first address as a number, and its prefix length. */
export interface Subnet {
  readonly base: number;
  readonly prefix: number;
}

export interface Route extends Subnet {
  readonly device: string;
}

/**
 * The ranges from which pod networks are chosen, in order: private ranges, then carrier-grade NAT.
 */
const ranges = ['10.128.0.0/9', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10'].map(parseSubnet);
const podPrefix = 22;
/**
 * Routes with a shorter prefix count as default routes (some VPNs set two halves) and do not occupy
 * addresses.
 */
const widestClaim = 8;

export function isSubnet(text: unknown): text is string {
  return typeof text === 'string' && tryParseSubnet(text) !== undefined;
}

export function parseSubnet(text: string): Subnet {
  const subnet = tryParseSubnet(text);
  if (subnet !== undefined) return subnet;
  throw new KubelingError(
    'CONTAINERD_SUBNET',
    `Cannot use a subnet as it must be written like 10.128.0.0/22, with no bits set after the prefix: current value is ${JSON.stringify(text)}`,
  );
}

function tryParseSubnet(text: string): Subnet | undefined {
  const [address = '', length = '', ...rest] = text.split('/');
  const prefix = Number(length);
  if (isIPv4(address) && /^\d+$/.test(length) && prefix <= 32 && rest.length === 0) {
    const subnet = networkOf(address, prefix);
    if (subnet.base === addressNumber(address)) return subnet;
  }
  return undefined;
}

function networkOf(address: string, prefix: number): Subnet {
  const size = 2 ** (32 - prefix);
  return { base: Math.floor(addressNumber(address) / size) * size, prefix };
}

function addressNumber(address: string): number {
  return address.split('.').reduce((total, byte) => total * 256 + Number(byte), 0);
}

export function formatSubnet({ base, prefix }: Subnet): string {
  return `${formatAddress(base)}/${prefix}`;
}

function formatAddress(address: number): string {
  return [24, 16, 8, 0].map((shift) => (address >>> shift) & 0xff).join('.');
}

export function overlaps(a: Subnet, b: Subnet): boolean {
  const size = 2 ** (32 - Math.min(a.prefix, b.prefix));
  return Math.floor(a.base / size) === Math.floor(b.base / size);
}

/**
 * Parses the networks and addresses of /proc/net/fib_trie, which contains all routing tables and
 * local addresses: a line with the address of a leaf is followed by one line per prefix length.
 */
export function parseFibTrie(text: string): Subnet[] {
  const found: Subnet[] = [];
  let address = '';
  for (const line of text.split('\n')) {
    address = /\|-- ([\d.]+)$/.exec(line)?.[1] ?? address;
    const prefix = /^\s+\/(\d+) /.exec(line)?.[1];
    if (prefix !== undefined && address !== '') found.push(networkOf(address, Number(prefix)));
  }
  return found;
}

/** Parses the main routing table in /proc/net/route, whose addresses are in host byte order. */
export function parseRouteTable(text: string): Route[] {
  return text
    .split('\n')
    .slice(1)
    .map((line) => line.split('\t'))
    .filter((fields) => fields.length >= 8)
    .map(([device = '', destination = '', , , , , , mask = '']) => ({
      device,
      base: littleEndian(destination),
      prefix: littleEndian(mask).toString(2).replaceAll('0', '').length,
    }));
}

function littleEndian(hex: string): number {
  return Buffer.from(hex, 'hex').reverse().readUInt32BE(0);
}

/**
 * Returns the first free network, starting at the position given by the hash; the result is always
 * the same for the same hash and networks in use.
 */
export function chooseSubnet(hash: string, used: readonly Subnet[]): Subnet {
  const claims = used.filter((subnet) => subnet.prefix >= widestClaim);
  for (const range of ranges) {
    const count = 2 ** (podPrefix - range.prefix);
    const first = Number.parseInt(hash.slice(0, 8), 16) % count;
    for (let step = 0; step < count; step++) {
      const base = range.base + ((first + step) % count) * 2 ** (32 - podPrefix);
      const candidate = { base, prefix: podPrefix };
      if (!claims.some((claim) => overlaps(claim, candidate))) return candidate;
    }
  }
  throw new KubelingError(
    'CONTAINERD_SUBNET',
    `Cannot choose a network for pods as every private range overlaps a route of this machine: tried ${ranges.map(formatSubnet).join(', ')}. Name one in the configuration`,
  );
}
