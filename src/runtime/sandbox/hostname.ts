import type { HostAlias } from '../../kinds/index.ts';
import { KubelingError } from '../../lib/index.ts';
import type { Pod } from '../../pods/index.ts';

export interface PodHostname {
  readonly host: string;
  /** Domain of the pod; empty when it has none. */
  readonly domain: string;
}

const longestHost = 63;
const longestKernelName = 64;
const label = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;

/** Hostname and domain of a pod. Throws SANDBOX_CONFIG for invalid names. */
export function podHostname(pod: Pod, clusterDomain: string): PodHostname {
  const { hostnameOverride, hostname = '', subdomain = '' } = pod.spec;
  if (hostnameOverride !== undefined) {
    requireSubdomain(hostnameOverride);
    return { host: shortened(pod, hostnameOverride), domain: '' };
  }
  if (hostname !== '') requireLabel('Hostname', hostname);
  const host = shortened(pod, hostname === '' ? pod.metadata.name : hostname);
  if (subdomain === '') return { host, domain: '' };
  requireLabel('Subdomain', subdomain);
  return { host, domain: `${subdomain}.${pod.metadata.namespace}.svc.${clusterDomain}` };
}

/** Hostname of the sandbox: the short name, or the FQDN with setHostnameAsFQDN. */
export function kernelHostname(pod: Pod, { host, domain }: PodHostname): string {
  if (domain === '' || pod.spec.setHostnameAsFQDN !== true) return host;
  const fqdn = `${host}.${domain}`;
  if (fqdn.length <= longestKernelName) return fqdn;
  throw new KubelingError(
    'SANDBOX_CONFIG',
    `failed to construct FQDN from pod hostname and cluster domain, FQDN ${fqdn} is too long (${longestKernelName} characters is the max, ${fqdn.length} characters requested)`,
  );
}

function shortened(pod: Pod, name: string): string {
  if (name.length <= longestHost) return name;
  const cut = name.slice(0, longestHost).replace(/[-.]+$/, '');
  if (cut !== '') return cut;
  throw new KubelingError(
    'SANDBOX_CONFIG',
    `hostname for pod "${pod.metadata.name}" was invalid: "${name.slice(0, 100)}"`,
  );
}

const labelRule =
  'it must be at most 63 lower case letters, digits and dashes, with a letter or digit at both ends';

function requireLabel(field: string, name: string): void {
  if (name.length <= longestHost && label.test(name)) return;
  throw new KubelingError('SANDBOX_CONFIG', `pod ${field} "${name}" is not a valid DNS label: ${labelRule}`);
}

function requireSubdomain(name: string): void {
  if (name.length <= 253 && name.split('.').every((part) => label.test(part))) return;
  throw new KubelingError(
    'SANDBOX_CONFIG',
    `pod HostnameOverride "${name}" is not a valid DNS subdomain: it must be at most 253 characters, parts joined by dots, each of lower case letters, digits and dashes, with a letter or digit at both ends`,
  );
}

/** Path of the hosts file inside containers. */
export const hostsFilePath = '/etc/hosts';

export interface HostsFileInputs {
  readonly hostname: PodHostname;
  readonly podIps: readonly string[];
  /** Text of the node's hosts file, for pods on the host network. */
  readonly nodeHosts: string;
}

/** Text of the hosts file for the pod's containers. */
export function hostsFile(pod: Pod, inputs: HostsFileInputs): string {
  const own = pod.spec.hostNetwork === true ? onHostNetwork(inputs) : onPodNetwork(inputs);
  return `${own}${aliasLines(pod.spec.hostAliases ?? [])}`;
}

function onHostNetwork({ nodeHosts }: HostsFileInputs): string {
  return `# Kubernetes-managed hosts file (host network).\n${nodeHosts}`;
}

function onPodNetwork({ hostname: { host, domain }, podIps }: HostsFileInputs): string {
  const names = domain === '' ? host : `${host}.${domain}\t${host}`;
  return [
    '# Kubernetes-managed hosts file.',
    '127.0.0.1\tlocalhost',
    '::1\tlocalhost ip6-localhost ip6-loopback',
    'fe00::0\tip6-localnet',
    'fe00::0\tip6-mcastprefix',
    'fe00::1\tip6-allnodes',
    'fe00::2\tip6-allrouters',
    ...podIps.map((ip) => `${ip}\t${names}`),
    '',
  ].join('\n');
}

function aliasLines(aliases: readonly HostAlias[]): string {
  if (aliases.length === 0) return '';
  const lines = aliases.map(({ ip, hostnames = [] }) => `${ip}\t${hostnames.join('\t')}\n`);
  return `\n# Entries added by HostAliases.\n${lines.join('')}`;
}
