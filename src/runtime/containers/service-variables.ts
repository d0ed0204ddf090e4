import { isIPv6 } from 'node:net';
import type { Service, ServicePort } from '../../kinds/index.ts';
import { KubelingError } from '../../lib/index.ts';
import { isStaticPod, type Pod } from '../../pods/index.ts';

/** The state of the service cache. */
export type KnownServices =
  /** The node has no API client, so no services are cached. */
  | { readonly state: 'none' }
  /** The services have not been listed yet. */
  | { readonly state: 'unread' }
  | { readonly state: 'read'; readonly services: readonly Service[] };

/**
 * Returns the environment variables of the services in the pod's namespace and of the API service,
 * sorted by service. Throws CONTAINER_CONFIG while services are not listed.
 */
export function serviceVariables(pod: Pod, known: KnownServices): Map<string, string> {
  const links = pod.spec.enableServiceLinks;
  if (links === undefined) {
    const message = 'nil pod.spec.enableServiceLinks encountered, cannot construct envvars';
    throw new KubelingError('CONTAINER_CONFIG', message);
  }
  // A static pod does not wait for services, because it may provide the API server.
  if (known.state === 'unread' && !isStaticPod(pod)) {
    const message = 'services have not yet been read at least once, cannot construct envvars';
    throw new KubelingError('CONTAINER_CONFIG', message);
  }
  if (known.state !== 'read') return new Map();
  const visible = visibleServices(known.services, pod.metadata.namespace, links ? 'linked' : 'unlinked');
  return new Map(visible.flatMap(variablesOf));
}

/** A service of the pod's namespace overrides the API service of the same name. */
function visibleServices(
  services: readonly Service[],
  namespace: string,
  links: 'linked' | 'unlinked',
): readonly Service[] {
  const addressed = services.filter(hasAddress);
  const api = addressed.filter(({ metadata }) => isApiService(metadata?.namespace, metadata?.name));
  const own = addressed.filter(({ metadata }) => links === 'linked' && metadata?.namespace === namespace);
  const byName = new Map([...api, ...own].map((service) => [service.metadata?.name ?? '', service]));
  return [...byName].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, service]) => service);
}

function hasAddress({ spec }: Service): boolean {
  const ip = spec?.clusterIP ?? '';
  return ip !== '' && ip !== 'None';
}

function isApiService(namespace: string | undefined, name: string | undefined): boolean {
  return namespace === 'default' && name === 'kubernetes';
}

function variablesOf({ metadata, spec }: Service): [string, string][] {
  const prefix = variableName(metadata?.name ?? '');
  const ip = spec?.clusterIP ?? '';
  const ports = spec?.ports ?? [];
  const named = ports.filter(({ name = '' }) => name !== '');
  return [
    [`${prefix}_SERVICE_HOST`, ip],
    ...ports.slice(0, 1).map(({ port }): [string, string] => [`${prefix}_SERVICE_PORT`, `${port}`]),
    ...named.map(({ name = '', port }): [string, string] => [
      `${prefix}_SERVICE_PORT_${variableName(name)}`,
      `${port}`,
    ]),
    ...ports.slice(0, 1).map((port): [string, string] => [`${prefix}_PORT`, urlOf(ip, port)]),
    ...ports.flatMap((port) => linkVariables(prefix, ip, port)),
  ];
}

function linkVariables(prefix: string, ip: string, port: ServicePort): [string, string][] {
  const name = `${prefix}_PORT_${port.port}_${protocolOf(port).toUpperCase()}`;
  return [
    [name, urlOf(ip, port)],
    [`${name}_PROTO`, protocolOf(port)],
    [`${name}_PORT`, `${port.port}`],
    [`${name}_ADDR`, ip],
  ];
}

function urlOf(ip: string, port: ServicePort): string {
  return `${protocolOf(port)}://${isIPv6(ip) ? `[${ip}]` : ip}:${port.port}`;
}

function protocolOf({ protocol = '' }: ServicePort): string {
  return (protocol === '' ? 'TCP' : protocol).toLowerCase();
}

function variableName(name: string): string {
  return name.replaceAll('-', '_').toUpperCase();
}
