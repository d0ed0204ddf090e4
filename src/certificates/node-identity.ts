import type { NodeAddress } from '../kinds/index.ts';
import { canonicalIp, type Identity } from '../protocols/x509/index.ts';
import type { RequiredIdentity } from './rotation-plan.ts';

export function nodeCertificateSubject(nodeName: string): Pick<Identity, 'commonName' | 'organizations'> {
  return { commonName: `system:node:${nodeName}`, organizations: ['system:nodes'] };
}

/** Returns the subject of a node's client certificate; it has no alternative names. */
export function clientIdentity(nodeName: string): Identity {
  return { ...nodeCertificateSubject(nodeName), dnsNames: [], ips: [] };
}

/**
 * Returns the subject and names of a node's serving certificate: all its addresses, of which at
 * least one must be an IP address.
 */
export function servingIdentity(nodeName: string, addresses: readonly NodeAddress[]): RequiredIdentity {
  const { dnsNames, ips } = altNamesOf(addresses);
  if (ips.length > 0)
    return { kind: 'ready', identity: { ...nodeCertificateSubject(nodeName), dnsNames, ips } };
  const known = addresses.map(({ type, address }) => `${type} ${address}`).join(', ') || 'none';
  return {
    kind: 'unknown',
    why: `the node must have an IP address among its addresses: current addresses are ${known}`,
  };
}

const addressTypes = ['InternalIP', 'ExternalIP', 'Hostname'];
const nameTypes = ['InternalDNS', 'ExternalDNS', 'Hostname'];

/**
 * Returns the DNS names and IP addresses, sorted and without duplicates. A hostname that is an IP
 * address is returned as an IP address.
 */
export function altNamesOf(addresses: readonly NodeAddress[]): Pick<Identity, 'dnsNames' | 'ips'> {
  const ips = new Set<string>();
  const dnsNames = new Set<string>();
  for (const { type, address } of addresses) {
    const ip = canonicalIp(address);
    if (ip !== undefined && addressTypes.includes(type)) ips.add(ip);
    else if (ip === undefined && address !== '' && nameTypes.includes(type)) dnsNames.add(address);
  }
  return { dnsNames: [...dnsNames].sort(), ips: [...ips].sort() };
}
