import type { NodeAddress } from '../kinds/index.ts';
import { canonicalIp, type Identity } from '../protocols/x509/index.ts';
import type { RequiredIdentity } from './rotation-plan.ts';

export function nodeCertificateSubject(nodeName: string): Pick<Identity, 'commonName' | 'organizations'> {
  return { commonName: `system:node:${nodeName}`, organizations: ['system:nodes'] };
}

/** Whom a node's client certificate is for. */
export function clientIdentity(nodeName: string): Identity {
  return { ...nodeCertificateSubject(nodeName), dnsNames: [], ips: [] };
}

/** Whom a node's serving certificate is for: all its addresses, of which one at least must be an IP address. */
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

/** Sorted, each once. A host name may be an address. */
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
