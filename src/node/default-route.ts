import type { LocalAddress } from './inputs.ts';
import { canonicalIp, type Family, familyOf, unfitness } from './ip.ts';

/** Interfaces the machine's default routes go through, the preferred first. */
export interface DefaultRoutes {
  readonly ipv4: readonly string[];
  readonly ipv6: readonly string[];
}

interface Route {
  readonly interface: string;
  readonly metric: number;
}

const isUp = 0x1;
const isReject = 0x200;

/** From the kernel's own tables, `/proc/net/route` and `/proc/net/ipv6_route`. */
export function readDefaultRoutes(ipv4: string, ipv6: string): DefaultRoutes {
  return { ipv4: byMetric(ipv4, routeOfIpv4), ipv6: byMetric(ipv6, routeOfIpv6) };
}

function byMetric(table: string, read: (fields: readonly string[]) => Route | undefined): readonly string[] {
  const routes = table.split('\n').flatMap((line) => read(line.trim().split(/\s+/)) ?? []);
  return [...new Set(routes.toSorted((a, b) => a.metric - b.metric).map((route) => route.interface))];
}

function routeOfIpv4(fields: readonly string[]): Route | undefined {
  const [name = '', destination, , flags = '', , , metric = '', mask] = fields;
  if (destination !== '00000000' || mask !== '00000000' || !isUsable(flags)) return undefined;
  return { interface: name, metric: Number.parseInt(metric, 10) || 0 };
}

function routeOfIpv6(fields: readonly string[]): Route | undefined {
  const [destination = '', prefix, , , , metric = '', , , flags = '', name = ''] = fields;
  if (!/^0{32}$/.test(destination) || prefix !== '00' || name === 'lo' || !isUsable(flags)) return undefined;
  return { interface: name, metric: Number.parseInt(metric, 16) || 0 };
}

function isUsable(flags: string): boolean {
  const bits = Number.parseInt(flags, 16);
  return (bits & isUp) !== 0 && (bits & isReject) === 0;
}

/** The address the machine itself would send from, of the preferred family where there is one. */
export function routedAddress(
  routes: DefaultRoutes,
  local: readonly LocalAddress[],
  prefer: Family,
): string | undefined {
  const families: readonly Family[] = prefer === 'ipv6' ? ['ipv6', 'ipv4'] : ['ipv4', 'ipv6'];
  for (const family of families) {
    for (const name of routes[family]) {
      // An interface may route without an address of its own; then one that the machine answers to anywhere serves.
      const found = reachable(local, name, family) ?? reachable(local, 'lo', family);
      if (found !== undefined) return found;
    }
  }
  return undefined;
}

function reachable(local: readonly LocalAddress[], name: string, family: Family): string | undefined {
  return local
    .filter((item) => item.interface === name)
    .flatMap(({ address }) => canonicalIp(address) ?? [])
    .find((ip) => familyOf(ip) === family && unfitness(ip) === undefined);
}
