import type { HostAlias } from '../../kinds/index.ts';
import type { Pod } from '../../pods/index.ts';
import type { PodHostname } from './hostname.ts';

/** Where containers expect it. */
export const hostsFilePath = '/etc/hosts';

export interface HostsFileInputs {
  readonly hostname: PodHostname;
  readonly podIps: readonly string[];
  /** The text of the node's own file, for pods on its network. */
  readonly nodeHosts: string;
}

/** The whole text of the file that all containers of the pod get. */
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
