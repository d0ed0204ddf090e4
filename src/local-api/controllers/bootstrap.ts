import { sameValue } from '../../api/index.ts';
import type { Logger } from '../../lib/index.ts';
import type { Controller, ServerContext } from '../api/index.ts';
import { systemPriorities } from '../kinds/classes.ts';
import {
  configMaps,
  endpoints,
  namespaces,
  priorityClasses,
  serviceAccounts,
  services,
} from '../kinds/resources.ts';
import type { ControllerClient, NamedObject } from './keyed-controller.ts';
import { keyedController } from './keyed-controller.ts';

/** The address at which pods reach the server through the `kubernetes` Service. */
export type ServerEndpoint =
  /** Pods cannot reach the server, because it listens only on addresses such as loopback. */
  | { readonly kind: 'unreachable'; readonly port: number }
  | { readonly kind: 'at'; readonly address: string; readonly port: number };

export interface BootstrapControllerDeps {
  readonly context: ServerContext;
  readonly client: ControllerClient;
  readonly log: Logger;
  readonly serverEndpoint: ServerEndpoint;
}

export const systemNamespaces = ['default', 'kube-system', 'kube-public', 'kube-node-lease'] as const;
const serviceNamespace = 'default';
const serviceName = 'kubernetes';

/**
 * Creates the objects that exist before the first request, such as the system namespaces.
 * Idempotent.
 */
export function ensureBootstrapObjects({ client, context, serverEndpoint }: BootstrapControllerDeps): void {
  for (const name of systemNamespaces) client.ensure(namespaces, undefined, namespace(name));
  for (const [name, value] of Object.entries(systemPriorities))
    client.ensure(priorityClasses, undefined, priorityClass(name, value));
  ensureService(context, client, serverEndpoint);
}

/** Creates the bootstrap objects again after they were deleted. */
export function bootstrapController(deps: BootstrapControllerDeps): Controller {
  const watched: readonly string[] = [namespaces, priorityClasses, services, endpoints].map(
    ({ plural }) => plural,
  );
  return keyedController({
    name: 'first-objects',
    context: deps.context,
    log: deps.log,
    initialKeys: () => ['all'],
    keysFor: ({ type, resource }) => (type === 'DELETED' && watched.includes(resource.plural) ? ['all'] : []),
    reconcile: () => {
      ensureBootstrapObjects(deps);
      return undefined;
    },
  });
}

function namespace(name: string): NamedObject {
  return { apiVersion: 'v1', kind: 'Namespace', metadata: { name } };
}

function priorityClass(name: string, value: number): NamedObject {
  const description =
    name === 'system-node-critical'
      ? 'For pods that are essential for the node.'
      : 'For pods that are essential for the cluster and may run on any node.';
  return {
    apiVersion: 'scheduling.k8s.io/v1',
    kind: 'PriorityClass',
    metadata: { name },
    value,
    description,
  };
}

/** A clusterIP is immutable, so the Service is recreated when the server address changes. */
function ensureService(context: ServerContext, client: ControllerClient, endpoint: ServerEndpoint): void {
  const desired = service(endpoint);
  const there = context.objects.get(services, serviceNamespace, serviceName);
  const isSame = ['clusterIP', 'ports'].every((field) =>
    sameValue(there?.spec?.[field], desired.spec[field]),
  );
  if (there !== undefined && !isSame) client.delete(services, there);
  client.ensure(services, serviceNamespace, desired);
  ensureEndpoints(context, client, endpoint);
}

function ensureEndpoints(context: ServerContext, client: ControllerClient, endpoint: ServerEndpoint): void {
  const there = context.objects.get(endpoints, serviceNamespace, serviceName);
  if (endpoint.kind === 'unreachable') {
    if (there !== undefined) client.delete(endpoints, there);
    return;
  }
  const subsets = [
    {
      addresses: [{ ip: endpoint.address }],
      ports: [{ name: 'https', port: endpoint.port, protocol: 'TCP' }],
    },
  ];
  if (there === undefined)
    client.ensure(endpoints, serviceNamespace, {
      apiVersion: 'v1',
      kind: 'Endpoints',
      metadata: { name: serviceName, labels: { 'endpointslice.kubernetes.io/skip-mirror': 'true' } },
      subsets,
    });
  else if (!sameValue(there['subsets'], subsets)) client.update(endpoints, { ...there, subsets });
}

/**
 * No service proxy runs on this node, so the clusterIP is the real address of the server. If pods
 * cannot reach the server, the Service is headless: clients then find no address in their
 * environment and fail immediately instead of timing out.
 */
function service(endpoint: ServerEndpoint): NamedObject & { readonly spec: Record<string, unknown> } {
  const port = endpoint.kind === 'at' ? endpoint.port : 443;
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: serviceName, labels: { component: 'apiserver', provider: 'kubernetes' } },
    spec: {
      clusterIP: endpoint.kind === 'at' ? endpoint.address : 'None',
      type: 'ClusterIP',
      sessionAffinity: 'None',
      ports: [{ name: 'https', protocol: 'TCP', port, targetPort: endpoint.port }],
    },
  };
}

export interface NamespaceContentsDeps {
  readonly context: ServerContext;
  readonly client: ControllerClient;
  readonly log: Logger;
  /** The CA bundle of the API server, as PEM. */
  readonly rootCertificates: () => string;
}

const account = 'default';
const bundle = 'kube-root-ca.crt';
/** How often the CA bundle is read again, because no event reports its renewal. */
const resyncMs = 300_000;

/** Creates the default service account and the CA bundle ConfigMap in every namespace. */
export function namespaceContentsController(deps: NamespaceContentsDeps): Controller {
  const { context, log } = deps;
  return keyedController({
    name: 'namespace-contents',
    context: context,
    log,
    initialKeys: () => context.objects.all(namespaces).map(({ metadata }) => metadata.name),
    keysFor: ({ type, resource, object: { metadata } }) => {
      if (resource.plural === namespaces.plural && type !== 'DELETED') return [metadata.name];
      const isOurs =
        (resource.plural === serviceAccounts.plural && metadata.name === account) ||
        (resource.plural === configMaps.plural && metadata.name === bundle);
      return isOurs && type !== 'ADDED' && metadata.namespace !== undefined ? [metadata.namespace] : [];
    },
    reconcile: (name) => (ensureNamespaceContents(deps, name) === 'there' ? resyncMs : undefined),
  });
}

/**
 * Ensures that a namespace has the default service account and the current CA bundle ConfigMap.
 * Also called directly at start, so that clients never read a namespace without these objects.
 */
export function ensureNamespaceContents(deps: NamespaceContentsDeps, name: string): 'there' | 'no-namespace' {
  const { context, client, rootCertificates } = deps;
  const namespace = context.objects.get(namespaces, undefined, name);
  if (namespace === undefined || namespace.metadata.deletionTimestamp !== undefined) return 'no-namespace';
  const kind = 'ServiceAccount';
  client.ensure(serviceAccounts, name, { apiVersion: 'v1', kind, metadata: { name: account } });
  const text = rootCertificates();
  const there = context.objects.get(configMaps, name, bundle);
  if (there === undefined) client.ensure(configMaps, name, bundleOf(text));
  else if ((there['data'] as Record<string, string> | undefined)?.['ca.crt'] !== text)
    client.update(configMaps, { ...there, data: { 'ca.crt': text } });
  return 'there';
}

function bundleOf(text: string) {
  const annotations = {
    'kubernetes.io/description': 'The CA bundle with which pods of this namespace verify the API server.',
  };
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: bundle, annotations },
    data: { 'ca.crt': text },
  };
}
