import { isIP } from 'node:net';
import type { NodeAddress } from '../kinds/index.ts';
import { KubelingError } from '../lib/index.ts';
import { type DefaultRoutes, routedAddress } from './default-route.ts';
import type { LocalAddress } from './inputs.ts';
import { canonicalIp, type Family, familyOf, isUnspecified, unfitness } from './ip.ts';
import type { NodeSettings } from './settings.ts';

/** All that is known about where the node can be reached. */
export interface AddressFacts {
  readonly local: readonly LocalAddress[];
  /** What names of the node resolve to; none when they do not. */
  readonly lookedUp: readonly string[];
  readonly routes: DefaultRoutes;
  /** The last good answer of an address provider. */
  readonly provided?: readonly NodeAddress[] | undefined;
}

type AddressSettings = Pick<NodeSettings, 'ips' | 'hostname' | 'cloudProvider' | 'name'>;

/** For whoever runs the cloud's own addresses: what this node was told to have. */
export const providedIpAnnotation = 'alpha.kubernetes.io/provided-node-ip';

/** The value of that annotation; undefined where it must not be there. */
export function providedIps({ ips, cloudProvider }: AddressSettings): string | undefined {
  const given = specified(ips);
  return cloudProvider === 'external' && given.length > 0 ? given.join(',') : undefined;
}

/**
 * The addresses of the node, those others use first. With an external cloud provider what is set stays, as that is its
 * work. Throws NODE_ADDRESS when there is none that others could use; whoever asks keeps what was known before.
 */
export function nodeAddresses(
  settings: AddressSettings,
  facts: AddressFacts,
  before: readonly NodeAddress[],
): readonly NodeAddress[] {
  const given = specified(settings.ips);
  for (const ip of given) refuseForeign(ip, facts.local);
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

function specified(ips: readonly string[]): readonly string[] {
  return ips.flatMap((text) => canonicalIp(text) ?? []).filter((ip) => !isUnspecified(ip));
}

/** A node must not be told to others by an address it does not have. */
function refuseForeign(ip: string, local: readonly LocalAddress[]): void {
  const problem = unfitness(ip);
  if (problem !== undefined) {
    throw addressError(`Cannot use ${ip} of --node-ip as it is ${problem}`, ip);
  }
  if (!isLocal(ip, local)) {
    throw addressError(`Cannot use ${ip} of --node-ip as no network interface of this machine has it`, ip);
  }
}

function isLocal(ip: string, local: readonly LocalAddress[]): boolean {
  return local.some(({ address }) => canonicalIp(address) === ip);
}

function addressError(message: string, ip: string): KubelingError {
  return new KubelingError('NODE_ADDRESS', message, { details: { ip } });
}

function detected({ ips, hostname, name }: AddressSettings, facts: AddressFacts): string {
  const asIp = isIP(hostname) === 0 ? undefined : canonicalIp(hostname);
  const first = canonicalIp(ips[0] ?? '');
  const prefer: Family = first === undefined ? 'ipv4' : familyOf(first);
  const found = asIp ?? resolved(facts, prefer) ?? routedAddress(facts.routes, facts.local, prefer);
  if (found !== undefined) return found;
  throw new KubelingError(
    'NODE_ADDRESS',
    `Cannot find the address of node ${name}: its name resolves to no address of this machine, and no default route leads through an interface with an address; give one with --node-ip`,
  );
}

/** What the name resolves to may be anybody's: only what is ours counts. */
function resolved({ lookedUp, local }: AddressFacts, prefer: Family): string | undefined {
  const own = lookedUp
    .flatMap((text) => canonicalIp(text) ?? [])
    .filter((ip) => unfitness(ip) === undefined && isLocal(ip, local));
  return own.find((ip) => familyOf(ip) === prefer) ?? own[0];
}

/** The chosen addresses go first and are alone of their type and family; the others stay as the provider has them. */
function fromProvider(
  provided: readonly NodeAddress[],
  given: readonly string[],
  hostname: string,
): readonly NodeAddress[] {
  const chosen = given.map((ip) => {
    const found = provided.find(({ address }) => canonicalIp(address) === ip);
    if (found !== undefined) return found;
    throw addressError(`Cannot use ${ip} of --node-ip as the address provider does not know it`, ip);
  });
  const isReplaced = ({ type, address }: NodeAddress) =>
    chosen.some((one) => one.type === type && isIP(address) === isIP(one.address));
  const named = provided.some(({ type }) => type === 'Hostname')
    ? []
    : [{ type: 'Hostname', address: hostname }];
  return [...chosen, ...provided.filter((address) => !isReplaced(address)), ...named];
}
