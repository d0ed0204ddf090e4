import { isIP } from 'node:net';
import { posix } from 'node:path';
import type { TextCheck } from './fields.ts';

/**
 * Checks of single string values. Each returns a description of the expected form, or undefined if
 * the value is valid.
 */

export const checkIpAddress: TextCheck = (value) => (isIP(value) === 0 ? 'an IP address' : undefined);

/** Accepts a comma-separated list of networks in CIDR notation; the list may be empty. */
export const checkNetworks: TextCheck = (value) =>
  value === '' || value.split(',').every(isNetwork) ? undefined : 'networks such as 10.244.0.0/24';

function isNetwork(value: string): boolean {
  const [address = '', bits = '', ...rest] = value.trim().split('/');
  const family = isIP(address);
  return (
    family !== 0 && rest.length === 0 && /^\d{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128)
  );
}

export const checkUrl: TextCheck = (value) => {
  if (value === '') return undefined;
  const url = URL.parse(value);
  return url !== null && (url.protocol === 'http:' || url.protocol === 'https:')
    ? undefined
    : 'an http or https URL';
};

/** Accepts a runtime endpoint; a path without a scheme is a unix socket. May be empty. */
export const checkUnixEndpoint: TextCheck = (value) =>
  value === '' || /^(unix:\/\/)?\/[^/]/.test(value)
    ? undefined
    : 'a socket such as unix:///run/containerd/containerd.sock';

/**
 * Accepts an absolute path without `.`, `..` or doubled slashes; only ASCII, because it becomes a
 * metric label.
 */
export const checkCleanPath: TextCheck = (value) => {
  if (!posix.isAbsolute(value)) return 'an absolute path';
  if (posix.normalize(value) !== value || (value !== '/' && value.endsWith('/'))) return 'a normalized path';
  return /^[\x20-\x7e]*$/.test(value) ? undefined : 'a path of ASCII characters only';
};

/** Accepts only the previous Kubernetes version, because only its hidden metrics can be shown. */
export const checkPreviousVersion: TextCheck = (value) =>
  value === '' || value === '1.35' ? undefined : '1.35 or empty';

const cpuRange = /^(\d{1,6})(?:-(\d{1,6}))?$/;

/** Accepts a CPU list such as `0-3,7`; may be empty. */
export const checkCpuList: TextCheck = (value) =>
  value === '' || value.split(',').every(isCpuRange) ? undefined : 'a list of CPUs such as 0-3,7';

function isCpuRange(value: string): boolean {
  const range = cpuRange.exec(value);
  return range !== null && Number(range[1]) <= Number(range[2] ?? range[1]);
}

/**
 * Accepts the endpoint of a trace collector: a host and port, or a gRPC address with one of three
 * schemes.
 */
export const checkTraceEndpoint: TextCheck = (value) => {
  const scheme = /^([^/]*)\/\//.exec(value)?.[1];
  const known = scheme === undefined || ['dns:', 'unix:', 'unix-abstract:'].includes(scheme);
  return known && !/\s/.test(value)
    ? undefined
    : 'host:port or an address with the scheme dns, unix or unix-abstract';
};

/** Checks of names with the rules of the API. Each returns the problem, or undefined. */

const dnsLabel = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
const namePart = /^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/;

export function isDnsSubdomain(name: string): boolean {
  return name.length <= 253 && name.split('.').every((part) => dnsLabel.test(part));
}

/** Checks the key of a label or taint: a name with an optional domain and slash before it. */
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
/** Domains and labels that a node may set on itself although they belong to Kubernetes. */
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

/**
 * Rejects Kubernetes labels that a node may not set on itself, because other components trust them.
 */
export function checkNodeLabel(key: string): string | undefined {
  const domain = key.includes('/') ? key.slice(0, key.indexOf('/')) : '';
  const isUnder = (parent: string) => domain === parent || domain.endsWith(`.${parent}`);
  if (!ownDomains.some(isUnder) || allowedLabels.has(key) || allowedDomains.some(isUnder)) return undefined;
  return `is a kubernetes.io or k8s.io label a node must not set: allowed are those under ${allowedDomains.join(' and ')}, and ${[...allowedLabels].join(', ')}`;
}
