import { BlockList, isIP, isIPv4 } from 'node:net';
import type { Node, NodeAddress } from '../kinds/index.ts';
import {
  type Clock,
  describeError,
  jitter,
  KubelingError,
  type Logger,
  type Random,
  withDeadline,
} from '../lib/index.ts';
import type { AddressProvider, LocalAddress } from './inputs.ts';
import type { NodeSettings } from './settings.ts';

/** The inputs from which the node's addresses are computed. */
export interface AddressFacts {
  readonly local: readonly LocalAddress[];
  /** The addresses the node's name resolves to; none when it does not resolve. */
  readonly lookedUp: readonly string[];
  readonly routes: DefaultRoutes;
  /** The last good result of the address provider. */
  readonly provided?: readonly NodeAddress[] | undefined;
}

type AddressSettings = Pick<NodeSettings, 'ips' | 'hostname' | 'cloudProvider' | 'name'>;

/** The annotation that passes the configured addresses of this node to the cloud provider. */
export const providedIpAnnotation = 'alpha.kubernetes.io/provided-node-ip';

/** The value of the provided-node-ip annotation; undefined if the Node must not have it. */
export function providedIps({ ips, cloudProvider }: AddressSettings): string | undefined {
  const valid = configured(ips);
  return cloudProvider === 'external' && valid.length > 0 ? valid.join(',') : undefined;
}

/**
 * The addresses of the node, preferred ones first. With an external cloud provider the existing
 * addresses are kept, because the provider owns them. Throws NODE_ADDRESS when no address is
 * reachable from other machines; the caller then keeps the previous ones.
 */
export function nodeAddresses(
  settings: AddressSettings,
  facts: AddressFacts,
  before: readonly NodeAddress[],
): readonly NodeAddress[] {
  const given = configured(settings.ips);
  for (const ip of given) rejectForeign(ip, facts.local);
  const { hostname, cloudProvider } = settings;
  if (facts.provided !== undefined) return fromProvider(facts.provided, given, hostname);
  if (cloudProvider === 'external' && before.length > 0) return before;
  const isLeftToCloud = cloudProvider === 'external' && settings.ips.length === 0;
  const internal = isLeftToCloud ? [] : given.length > 0 ? given : [detected(settings, facts)];
  return [
    ...internal.map((address) => ({ type: 'InternalIP', address })),
    { type: 'Hostname', address: hostname },
  ];
}

function configured(ips: readonly string[]): readonly string[] {
  return ips.flatMap((text) => canonicalAddressIp(text) ?? []).filter((ip) => !isUnspecified(ip));
}

/** A configured address that the machine does not have must not be published. */
function rejectForeign(ip: string, local: readonly LocalAddress[]): void {
  const problem = unusableAddressReason(ip);
  if (problem !== undefined) {
    throw addressError(`Cannot use ${ip} of --node-ip: it is ${problem}`, ip);
  }
  if (!isLocal(ip, local)) {
    throw addressError(`Cannot use ${ip} of --node-ip: no network interface of this machine has it`, ip);
  }
}

function isLocal(ip: string, local: readonly LocalAddress[]): boolean {
  return local.some(({ address }) => canonicalAddressIp(address) === ip);
}

function addressError(message: string, ip: string): KubelingError {
  return new KubelingError('NODE_ADDRESS', message, { details: { ip } });
}

function detected({ ips, hostname, name }: AddressSettings, facts: AddressFacts): string {
  const asIp = isIP(hostname) === 0 ? undefined : canonicalAddressIp(hostname);
  const first = canonicalAddressIp(ips[0] ?? '');
  const prefer: AddressFamily = first === undefined ? 'ipv4' : familyOf(first);
  const found = asIp ?? resolved(facts, prefer) ?? routedAddress(facts.routes, facts.local, prefer);
  if (found !== undefined) return found;
  throw new KubelingError(
    'NODE_ADDRESS',
    `Cannot find the address of node ${name}: its name resolves to no address of this machine, and no default route leads through an interface with an address. Set --node-ip`,
  );
}

/**
 * The node's name may resolve to another machine's address, so only addresses of this machine
 * count.
 */
function resolved({ lookedUp, local }: AddressFacts, prefer: AddressFamily): string | undefined {
  const own = lookedUp
    .flatMap((text) => canonicalAddressIp(text) ?? [])
    .filter((ip) => unusableAddressReason(ip) === undefined && isLocal(ip, local));
  return own.find((ip) => familyOf(ip) === prefer) ?? own[0];
}

/**
 * Puts the configured addresses first and drops other addresses of the provider with the same type
 * and family; the provider's remaining addresses are kept.
 */
function fromProvider(
  provided: readonly NodeAddress[],
  given: readonly string[],
  hostname: string,
): readonly NodeAddress[] {
  const chosen = given.map((ip) => {
    const found = provided.find(({ address }) => canonicalAddressIp(address) === ip);
    if (found !== undefined) return found;
    throw addressError(`Cannot use ${ip} of --node-ip: the address provider does not list it`, ip);
  });
  const isReplaced = ({ type, address }: NodeAddress) =>
    chosen.some((one) => one.type === type && isIP(address) === isIP(one.address));
  const named = provided.some(({ type }) => type === 'Hostname')
    ? []
    : [{ type: 'Hostname', address: hostname }];
  return [...chosen, ...provided.filter((address) => !isReplaced(address)), ...named];
}

/** The host IPs of pods: internal addresses before external ones, at most one of each family. */
export function hostIps(node: Node): readonly string[] {
  const addresses = node.status?.addresses ?? [];
  const ips = ['InternalIP', 'ExternalIP'].flatMap((wanted) =>
    addresses.filter(({ type }) => type === wanted).map(({ address }) => address),
  );
  const [first] = ips;
  if (first === undefined) return [];
  const second = ips.find((ip) => isIPv4(ip) !== isIPv4(first));
  return second === undefined ? [first] : [first, second];
}

/** The interfaces of the default routes, preferred ones first. */
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

/** Parses `/proc/net/route` and `/proc/net/ipv6_route`. */
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

/** The source address of the default route, in the preferred family if possible. */
export function routedAddress(
  routes: DefaultRoutes,
  local: readonly LocalAddress[],
  prefer: AddressFamily,
): string | undefined {
  const families: readonly AddressFamily[] = prefer === 'ipv6' ? ['ipv6', 'ipv4'] : ['ipv4', 'ipv6'];
  for (const family of families) {
    for (const name of routes[family]) {
      // An interface of a route may have no address; then an address of the loopback interface is
      // used.
      const found = reachable(local, name, family) ?? reachable(local, 'lo', family);
      if (found !== undefined) return found;
    }
  }
  return undefined;
}

function reachable(local: readonly LocalAddress[], name: string, family: AddressFamily): string | undefined {
  return local
    .filter((item) => item.interface === name)
    .flatMap(({ address }) => canonicalAddressIp(address) ?? [])
    .find((ip) => familyOf(ip) === family && unusableAddressReason(ip) === undefined);
}

/** IP address ranges that other machines cannot reach, with the reason. */
const unusableBlocks: readonly (readonly [string, BlockList])[] = [
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

export type AddressFamily = 'ipv4' | 'ipv6';

export function familyOf(ip: string): AddressFamily {
  return isIPv4(ip) ? 'ipv4' : 'ipv6';
}

/** The canonical spelling of an IP address, without a zone; undefined for an invalid one. */
export function canonicalAddressIp(text: string): string | undefined {
  const [ip = ''] = text.trim().split('%');
  if (isIP(ip) === 0) return undefined;
  return isIPv4(ip) ? ip : new URL(`http://[${ip}]`).hostname.slice(1, -1);
}

function isUnspecified(ip: string): boolean {
  return ip === '0.0.0.0' || ip === '::';
}

/** Why other machines cannot reach the address; undefined when they can. */
export function unusableAddressReason(ip: string): string | undefined {
  return unusableBlocks.find(([, list]) => list.check(ip, familyOf(ip)))?.[0];
}

export interface LatestAddresses {
  /** The last good result of the address provider; undefined before the first. */
  readonly latest: readonly NodeAddress[] | undefined;
}

export interface PolledAddressesOptions {
  readonly provider: AddressProvider;
  readonly nodeName: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** Called when the addresses have changed. */
  readonly changed?: () => void;
  /** The interval of calls; 10 s by default. */
  readonly everyMs?: number;
  /** The timeout of a call of the address provider; 5 s by default. */
  readonly deadlineMs?: number;
}

/** Polls the address provider in the background, so that a slow provider blocks nothing. */
export class PolledAddresses implements LatestAddresses {
  readonly #options: PolledAddressesOptions;
  #latest: readonly NodeAddress[] | undefined;
  #problem: string | undefined;

  constructor(options: PolledAddressesOptions) {
    this.#options = options;
  }

  get latest(): readonly NodeAddress[] | undefined {
    return this.#latest;
  }

  /** Why the last call of the address provider failed; undefined when it succeeded. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** Polls until aborted; rejects only with the signal's reason. */
  async run(signal: AbortSignal): Promise<never> {
    const { clock, random, everyMs = 10_000 } = this.#options;
    for (;;) {
      await this.#poll(signal);
      await clock.sleep(jitter(random, everyMs, 0.04), signal);
    }
  }

  async #poll(signal: AbortSignal): Promise<void> {
    const { provider, nodeName, clock, deadlineMs: ms = 5_000 } = this.#options;
    const deadline = { clock, ms, what: `get the addresses of ${nodeName} from the address provider` };
    try {
      this.#accept(await withDeadline(deadline, (inner) => provider.addresses(nodeName, inner), signal));
    } catch (error) {
      signal.throwIfAborted();
      this.#recordFailure(describeError(error));
    }
  }

  #accept(addresses: readonly NodeAddress[]): void {
    // A node without an address is unreachable, so an empty result of the provider is an error.
    if (addresses.length === 0) {
      this.#recordFailure('it returned no address');
      return;
    }
    this.#problem = undefined;
    const isNew = JSON.stringify(addresses) !== JSON.stringify(this.#latest);
    this.#latest = addresses;
    if (isNew) this.#options.changed?.();
  }

  #recordFailure(problem: string): void {
    if (this.#problem === problem) return;
    this.#problem = problem;
    const { logger } = this.#options;
    logger.warn('Failed to get node addresses from the address provider, keeping the last ones', {
      problem,
    });
  }
}
