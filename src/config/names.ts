/** Names as the API accepts them. Each answers with what is wrong, or undefined. */

const dnsLabel = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
const namePart = /^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/;

export function isDnsSubdomain(name: string): boolean {
  return name.length <= 253 && name.split('.').every((part) => dnsLabel.test(part));
}

/** Keys of labels and taints: a name, perhaps behind a domain and a slash. */
export function checkQualifiedName(name: string): string | undefined {
  const parts = name.split('/');
  const [domain, last] = parts.length === 1 ? [undefined, parts[0] ?? ''] : [parts[0] ?? '', parts[1] ?? ''];
  const fits = parts.length <= 2 && last.length <= 63 && namePart.test(last);
  if (fits && (domain === undefined || isDnsSubdomain(domain))) return undefined;
  return 'must be a name of at most 63 letters, digits, -, _ or ., perhaps behind a DNS domain and a slash';
}

export function checkLabelValue(value: string): string | undefined {
  if (value === '' || (value.length <= 63 && namePart.test(value))) return undefined;
  return 'must be empty or at most 63 letters, digits, -, _ or ., with a letter or digit at both ends';
}

const ownDomains = ['kubernetes.io', 'k8s.io'];
/** The labels under these domains that a node may give itself. */
const allowedDomains = ['kubelet.kubernetes.io', 'node.kubernetes.io'];
const allowedLabels: ReadonlySet<string> = new Set([
  'beta.kubernetes.io/arch',
  'beta.kubernetes.io/instance-type',
  'beta.kubernetes.io/os',
  'failure-domain.beta.kubernetes.io/region',
  'failure-domain.beta.kubernetes.io/zone',
  'kubernetes.io/arch',
  'kubernetes.io/hostname',
  'kubernetes.io/os',
  'node.kubernetes.io/instance-type',
  'topology.kubernetes.io/region',
  'topology.kubernetes.io/zone',
]);

/** Nodes may not claim labels of Kubernetes itself, by which others trust them. */
export function checkNodeLabel(key: string): string | undefined {
  const domain = key.includes('/') ? key.slice(0, key.indexOf('/')) : '';
  const isUnder = (parent: string) => domain === parent || domain.endsWith(`.${parent}`);
  if (!ownDomains.some(isUnder) || allowedLabels.has(key) || allowedDomains.some(isUnder)) return undefined;
  return `is a kubernetes.io or k8s.io label a node must not set: allowed are those under ${allowedDomains.join(' and ')}, and ${[...allowedLabels].join(', ')}`;
}
