import { BlockList, isIPv4, isIPv6 } from 'node:net';
import { type ApiResource, apiResources } from '../../api/index.ts';
import type { ObjectReader, StoredObject } from '../api/index.ts';
import type { StreamCall, StreamsDeps } from './deps.ts';
import type { KubeletEndpoint } from './kubelet-dialer.ts';
import { kubeletOf } from './pod-target.ts';
import { badRequest, notFound, unavailable } from './refusals.ts';

/** The target of a proxy request. */
export type ProxyTarget =
  /** The kubelet of a node: the request presents the client certificate of the API server. */
  | { readonly kind: 'kubelet'; readonly address: KubeletEndpoint }
  | {
      readonly kind: 'address';
      readonly scheme: 'http' | 'https';
      readonly host: string;
      readonly port: number | undefined;
    };

interface NamedTarget {
  readonly scheme: 'http' | 'https';
  readonly name: string;
  readonly port: string;
}

const endpoints: ApiResource = {
  group: '',
  version: 'v1',
  plural: 'endpoints',
  kind: 'Endpoints',
  scope: 'namespace',
};

export function proxyTarget(call: StreamCall, deps: Pick<StreamsDeps, 'objects' | 'kubelet'>): ProxyTarget {
  const { plural } = call.entry.resource;
  const named = splitName(call.name);
  if (named === undefined)
    throw badRequest(`invalid ${plural.replace(/s$/, '')} request ${JSON.stringify(call.name)}`);
  switch (plural) {
    case 'nodes':
      return nodeTarget(named, deps);
    case 'services':
      return serviceTarget(call, named, deps.objects);
    default:
      return podTarget(call, named, deps.objects);
  }
}

/** Parses a target name in the forms `name`, `name:port` and `scheme:name:port`. */
function splitName(id: string): NamedTarget | undefined {
  const parts = id.split(':');
  const [scheme, name, port] =
    parts.length === 3 ? parts : parts.length === 2 ? ['', ...parts] : ['', id, ''];
  if (parts.length > 3 || name === undefined || name === '') return undefined;
  if (scheme !== '' && scheme !== 'http' && scheme !== 'https') return undefined;
  return { scheme: scheme === 'https' ? 'https' : 'http', name, port: port ?? '' };
}

function nodeTarget(
  { scheme, name, port }: NamedTarget,
  { objects, kubelet }: Pick<StreamsDeps, 'objects' | 'kubelet'>,
): ProxyTarget {
  const address = kubeletOf(name, objects, kubelet);
  if (port === '' || Number(port) === address.port) return { kind: 'kubelet', address };
  const { addresses = [] } = (objects.get(apiResources.nodes, undefined, name)?.status ?? {}) as {
    readonly addresses?: readonly { readonly type: string; readonly address: string }[];
  };
  const host = addresses.find(({ type }) => type === 'InternalIP')?.address ?? '';
  return { kind: 'address', scheme, host: allowedAddress(host), port: portNumber(port) };
}

function podTarget(
  { namespace }: StreamCall,
  { scheme, name, port }: NamedTarget,
  objects: ObjectReader,
): ProxyTarget {
  const pod = objects.get(apiResources.pods, namespace, name);
  if (pod === undefined) throw notFound({ kind: 'pods', name });
  const { podIP = '' } = (pod.status ?? {}) as { readonly podIP?: string };
  return { kind: 'address', scheme, host: allowedAddress(podIP), port: portNumber(port) ?? firstPort(pod) };
}

interface PodPorts {
  readonly containers?: readonly {
    readonly ports?: readonly { readonly name?: string; readonly containerPort: number }[];
  }[];
}

function firstPort(pod: StoredObject): number | undefined {
  const { containers = [] } = (pod.spec ?? {}) as PodPorts;
  return containers.flatMap(({ ports = [] }) => ports).at(0)?.containerPort;
}

interface ServiceShape {
  readonly selector?: Readonly<Record<string, string>>;
  readonly ports?: readonly ServicePort[];
}

interface ServicePort {
  readonly name?: string;
  readonly port: number;
  readonly targetPort?: number | string;
}

function serviceTarget(
  { namespace }: StreamCall,
  { scheme, name, port }: NamedTarget,
  objects: ObjectReader,
): ProxyTarget {
  const service = objects.get(apiResources.services, namespace, name);
  if (service === undefined) throw notFound({ kind: 'services', name });
  const { ports = [], selector } = (service.spec ?? {}) as ServiceShape;
  const isNumber = /^\d+$/.test(port);
  const servicePort = ports.find((each) =>
    isNumber ? each.port === Number(port) : (each.name ?? '') === port,
  );
  if (servicePort === undefined && isNumber)
    throw unavailable(`no service port ${port} found for service ${JSON.stringify(name)}`);
  const found =
    writtenEndpoint(objects, namespace, name, servicePort === undefined ? port : (servicePort.name ?? '')) ??
    (servicePort === undefined ? undefined : selectedPod(objects, namespace, selector, servicePort));
  if (found === undefined) throw unavailable(`no endpoints available for service ${JSON.stringify(name)}`);
  return { kind: 'address', scheme, host: allowedAddress(found.host), port: found.port };
}

interface Found {
  readonly host: string;
  readonly port: number;
}

interface EndpointsShape {
  readonly subsets?: readonly {
    readonly addresses?: readonly { readonly ip: string }[];
    readonly ports?: readonly { readonly name?: string; readonly port: number }[];
  }[];
}

function writtenEndpoint(
  objects: ObjectReader,
  namespace: string | undefined,
  name: string,
  portName: string,
): Found | undefined {
  const stored = objects.get(endpoints, namespace, name) as EndpointsShape | undefined;
  for (const { addresses = [], ports = [] } of stored?.subsets ?? []) {
    const port = ports.find((each) => (each.name ?? '') === portName)?.port;
    const host = addresses[0]?.ip;
    if (port !== undefined && host !== undefined) return { host, port };
  }
  return undefined;
}

interface ReadyStatus {
  readonly podIP?: string;
  readonly conditions?: readonly { readonly type: string; readonly status: string }[];
}

/** There is no endpoints controller, so a ready pod that the service selects is used. */
function selectedPod(
  objects: ObjectReader,
  namespace: string | undefined,
  selector: Readonly<Record<string, string>> | undefined,
  { port, targetPort = port }: ServicePort,
): Found | undefined {
  if (selector === undefined) return undefined;
  for (const pod of objects.all(apiResources.pods, namespace)) {
    const { podIP, conditions = [] } = (pod.status ?? {}) as ReadyStatus;
    const isReady = conditions.some(({ type, status }) => type === 'Ready' && status === 'True');
    const { labels = {} } = pod.metadata;
    const isSelected = Object.entries(selector).every(([key, value]) => labels[key] === value);
    const own = typeof targetPort === 'number' ? targetPort : namedPort(pod, targetPort);
    if (isReady && isSelected && podIP !== undefined && own !== undefined) return { host: podIP, port: own };
  }
  return undefined;
}

function namedPort(pod: StoredObject, portName: string): number | undefined {
  const { containers = [] } = (pod.spec ?? {}) as PodPorts;
  return containers.flatMap(({ ports = [] }) => ports).find(({ name }) => name === portName)?.containerPort;
}

function portNumber(port: string): number | undefined {
  if (port === '') return undefined;
  const number = Number(port);
  if (!Number.isInteger(number) || number < 1 || number > 65_535) throw badRequest(`invalid port ${port}`);
  return number;
}

/**
 * One block list for each IP family: in a common list, an IPv4 address would also match a rule for
 * IPv4-mapped IPv6 addresses.
 */
const refusedIpv4 = blockList('ipv4', [
  ['0.0.0.0', 8], // Linux connects 0.0.0.0 to loopback
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['192.88.99.0', 24], // 6to4 relay addresses
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
]);
const refusedIpv6 = blockList('ipv6', [
  ['::', 96], // unspecified, loopback and IPv4-compatible addresses
  ['::ffff:0:0', 96], // IPv4-mapped addresses
  ['::ffff:0:0:0', 96], // IPv4-translated addresses
  ['64:ff9b::', 96], // NAT64 addresses
  ['64:ff9b:1::', 48], // local-use NAT64 addresses
  ['100::', 64], // discard-only addresses
  ['2001::', 32], // Teredo addresses
  ['2002::', 16], // 6to4 addresses
  ['fe80::', 10],
  ['fec0::', 10],
  ['ff00::', 8],
]);

function blockList(family: 'ipv4' | 'ipv6', subnets: readonly (readonly [string, number])[]): BlockList {
  const list = new BlockList();
  for (const [net, prefix] of subnets) list.addSubnet(net, prefix, family);
  return list;
}

/**
 * Accepts a plain IP address of a host as proxy target. Loopback and link-local addresses must not
 * be reachable through the API server, also not as an IPv6 form of an IPv4 address or with a zone.
 */
export function allowedAddress(host: string): string {
  const isAdmitted = isIPv4(host)
    ? !refusedIpv4.check(host, 'ipv4')
    : isIPv6(host) && !host.includes('%') && !refusedIpv6.check(host, 'ipv6');
  if (!isAdmitted) throw badRequest('address not allowed');
  return host;
}
