import { type AltNames, canonicalIp } from '../../protocols/x509/index.ts';

/** By what names pods and people call the server, wherever it is. */
const always = [
  'localhost',
  'kubernetes',
  'kubernetes.default',
  'kubernetes.default.svc',
  'kubernetes.default.svc.cluster.local',
];
const loopback = ['127.0.0.1', '::1'];

/** What the server's certificate is made out to. A host name may be an address; what is neither is left out. */
export function servingNames(hostnames: readonly string[], addresses: readonly string[]): AltNames {
  const given = [...hostnames, ...addresses].map((name) => name.trim().replace(/\.$/, ''));
  const ips = given.map(canonicalIp).filter((ip) => ip !== undefined);
  const names = given.filter((name) => canonicalIp(name) === undefined && isDnsName(name));
  return {
    dnsNames: [...new Set([...always, ...names.map((name) => name.toLowerCase())])],
    ips: [...new Set([...loopback, ...ips])],
  };
}

const label = /^[a-z0-9]([-a-z0-9_]{0,61}[a-z0-9])?$/i;

function isDnsName(name: string): boolean {
  return name.length <= 253 && name.split('.').every((part) => label.test(part));
}
