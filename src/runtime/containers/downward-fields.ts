import { isIPv4, isIPv6 } from 'node:net';
import type { ObjectFieldSelector } from '../../kinds/index.ts';
import { KubelingError } from '../../lib/index.ts';
import type { Pod } from '../../pods/index.ts';
import { goQuote } from './go-quote.ts';

/** Addresses that a pod can be told, beside what its own object says. */
export interface DownwardAddresses {
  readonly podIps: readonly string[];
  /** Of the node, preferred one first. */
  readonly hostIps: readonly string[];
}

/** A field of the pod as text, for its own containers. Throws CONTAINER_CONFIG for what is no such field. */
export function podField(pod: Pod, { fieldPath }: ObjectFieldSelector, addresses: DownwardAddresses): string {
  const [, path = fieldPath, key] = /^([^[]+)\['(.*)'\]$/s.exec(fieldPath) ?? [];
  if (key !== undefined) return subscripted(pod, path, key, fieldPath);
  const podIps = orderPodIps(addresses.podIps, addresses.hostIps);
  switch (path) {
    case 'metadata.name':
      return pod.metadata.name;
    case 'metadata.namespace':
      return pod.metadata.namespace;
    case 'metadata.uid':
      return pod.metadata.uid;
    case 'metadata.labels':
      return formatMap(pod.metadata.labels);
    case 'metadata.annotations':
      return formatMap(pod.metadata.annotations);
    case 'spec.nodeName':
    case 'spec.host':
      return pod.spec.nodeName ?? '';
    case 'spec.serviceAccountName':
      return pod.spec.serviceAccountName ?? '';
    case 'status.hostIP':
      return addresses.hostIps[0] ?? '';
    case 'status.hostIPs':
      return addresses.hostIps.join(',');
    case 'status.podIP':
      return podIps[0] ?? '';
    case 'status.podIPs':
      return podIps.join(',');
    default:
      throw new KubelingError('CONTAINER_CONFIG', `unsupported fieldPath: ${fieldPath}`);
  }
}

function subscripted(pod: Pod, path: string, key: string, fieldPath: string): string {
  if (path === 'metadata.labels') return pod.metadata.labels?.[key] ?? '';
  if (path === 'metadata.annotations') return pod.metadata.annotations?.[key] ?? '';
  throw new KubelingError('CONTAINER_CONFIG', `field label does not support subscript: ${fieldPath}`);
}

/** One line for each, sorted, values quoted. */
export function formatMap(map: Readonly<Record<string, string>> = {}): string {
  return Object.keys(map)
    .sort()
    .map((key) => `${key}=${goQuote(map[key] ?? '')}`)
    .join('\n');
}

/** One address of each family, that of the node's first address before the other. */
export function orderPodIps(podIps: readonly string[], nodeIps: readonly string[]): string[] {
  const families = isIPv6(nodeIps[0] ?? '') ? [isIPv6, isIPv4] : [isIPv4, isIPv6];
  return families.flatMap((isOfFamily) => podIps.find((ip) => isOfFamily(ip)) ?? []);
}
