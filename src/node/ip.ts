import { BlockList, isIP, isIPv4 } from 'node:net';

/** Addresses no other machine can reach a node by, each with what is wrong with it. */
const unfit: readonly (readonly [string, BlockList])[] = [
  ['a loopback address', blocks(['127.0.0.0', 8], ['::1', 128])],
  ['a multicast address', blocks(['224.0.0.0', 4], ['ff00::', 8])],
  ['a link-local address', blocks(['169.254.0.0', 16], ['fe80::', 10])],
  ['an all zeros address', blocks(['0.0.0.0', 32], ['::', 128])],
];

function blocks(...subnets: readonly (readonly [string, number])[]): BlockList {
  const list = new BlockList();
  for (const [address, prefix] of subnets) list.addSubnet(address, prefix, familyOf(address));
  return list;
}

export type Family = 'ipv4' | 'ipv6';

export function familyOf(ip: string): Family {
  return isIPv4(ip) ? 'ipv4' : 'ipv6';
}

/** The one spelling of an address; undefined for what is none. An interface behind % is left out. */
export function canonicalIp(text: string): string | undefined {
  const [ip = ''] = text.trim().split('%');
  if (isIP(ip) === 0) return undefined;
  return isIPv4(ip) ? ip : new URL(`http://[${ip}]`).hostname.slice(1, -1);
}

export function isUnspecified(ip: string): boolean {
  return ip === '0.0.0.0' || ip === '::';
}

/** What keeps others from reaching a machine by the address; undefined for nothing. */
export function unfitness(ip: string): string | undefined {
  return unfit.find(([, list]) => list.check(ip, familyOf(ip)))?.[0];
}
