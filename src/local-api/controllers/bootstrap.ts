import { sameValue } from '../../api/index.ts';
import type { Logger } from '../../lib/index.ts';
import type { ApiLoop, World } from '../api/index.ts';
import { systemPriorities } from '../kinds/classes.ts';
import {
  configMaps,
  endpoints,
  namespaces,
  priorityClasses,
  serviceAccounts,
  services,
} from '../kinds/resources.ts';
import type { NamedObject, ServerHand } from './keyed-controller.ts';
import { keyedLoop } from './keyed-controller.ts';

/** How pods may reach the server by its service. */
export type OwnService =
  /** Not at all: the server listens only where pods cannot come. */
  | { readonly kind: 'unreachable'; readonly port: number }
  | { readonly kind: 'at'; readonly address: string; readonly port: number };

export interface BootstrapDeps {
  readonly world: World;
  readonly hand: ServerHand;
  readonly log: Logger;
  readonly ownService: OwnService;
}

export const firstNamespaces = ['default', 'kube-system', 'kube-public', 'kube-node-lease'] as const;
const serviceHome = 'default';
const serviceName = 'kubernetes';

/** What is there before anybody asks. May be done again at any time. */
export function ensureFirstObjects({ hand, world, ownService }: BootstrapDeps): void {
  for (const name of firstNamespaces) hand.ensure(namespaces, undefined, namespace(name));
  for (const [name, value] of Object.entries(systemPriorities))
    hand.ensure(priorityClasses, undefined, priorityClass(name, value));
  ensureService(world, hand, ownService);
}

/** Makes them again when they are gone. */
export function bootstrapLoop(deps: BootstrapDeps): ApiLoop {
  const watched: readonly string[] = [namespaces, priorityClasses, services, endpoints].map(
    ({ plural }) => plural,
  );
  return keyedLoop({
    name: 'first-objects',
    world: deps.world,
    log: deps.log,
    first: () => ['all'],
    keysOf: ({ type, resource }) => (type === 'DELETED' && watched.includes(resource.plural) ? ['all'] : []),
    look: () => {
      ensureFirstObjects(deps);
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
      ? 'For pods a node cannot do without.'
      : 'For pods the cluster cannot do without, on whichever node they run.';
  return {
    apiVersion: 'scheduling.k8s.io/v1',
    kind: 'PriorityClass',
    metadata: { name },
    value,
    description,
  };
}

/** An address once given does not change: the service is made anew when the server is found elsewhere. */
function ensureService(world: World, hand: ServerHand, own: OwnService): void {
  const wanted = service(own);
  const there = world.objects.get(services, serviceHome, serviceName);
  const isSame = ['clusterIP', 'ports'].every((field) => sameValue(there?.spec?.[field], wanted.spec[field]));
  if (there !== undefined && !isSame) hand.delete(services, there);
  hand.ensure(services, serviceHome, wanted);
  ensureEndpoints(world, hand, own);
}

function ensureEndpoints(world: World, hand: ServerHand, own: OwnService): void {
  const there = world.objects.get(endpoints, serviceHome, serviceName);
  if (own.kind === 'unreachable') {
    if (there !== undefined) hand.delete(endpoints, there);
    return;
  }
  const subsets = [
    { addresses: [{ ip: own.address }], ports: [{ name: 'https', port: own.port, protocol: 'TCP' }] },
  ];
  if (there === undefined)
    hand.ensure(endpoints, serviceHome, {
      apiVersion: 'v1',
      kind: 'Endpoints',
      metadata: { name: serviceName, labels: { 'endpointslice.kubernetes.io/skip-mirror': 'true' } },
      subsets,
    });
  else if (!sameValue(there['subsets'], subsets)) hand.update(endpoints, { ...there, subsets });
}

/**
 * Without anything that would send traffic for a service on, its address must be where the server really is. Where pods
 * cannot come, it has none: clients then find no server in their environment, and fail at once instead of waiting.
 */
function service(own: OwnService): NamedObject & { readonly spec: Record<string, unknown> } {
  const port = own.kind === 'at' ? own.port : 443;
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: serviceName, labels: { component: 'apiserver', provider: 'kubernetes' } },
    spec: {
      clusterIP: own.kind === 'at' ? own.address : 'None',
      type: 'ClusterIP',
      sessionAffinity: 'None',
      ports: [{ name: 'https', protocol: 'TCP', port, targetPort: own.port }],
    },
  };
}

export interface NamespaceContentsDeps {
  readonly world: World;
  readonly hand: ServerHand;
  readonly log: Logger;
  /** The certificates by which pods know the server, as PEM. */
  readonly rootCertificates: () => string;
}

const account = 'default';
const bundle = 'kube-root-ca.crt';
/** Certificates may be renewed without anybody telling. */
const lookAgainMs = 300_000;

/** What every namespace has: an account for its pods, and the certificates by which they know the server. */
export function namespaceContentsLoop(deps: NamespaceContentsDeps): ApiLoop {
  const { world, log } = deps;
  return keyedLoop({
    name: 'namespace-contents',
    world,
    log,
    first: () => world.objects.all(namespaces).map(({ metadata }) => metadata.name),
    keysOf: ({ type, resource, object: { metadata } }) => {
      if (resource.plural === namespaces.plural && type !== 'DELETED') return [metadata.name];
      const isOurs =
        (resource.plural === serviceAccounts.plural && metadata.name === account) ||
        (resource.plural === configMaps.plural && metadata.name === bundle);
      return isOurs && type !== 'ADDED' && metadata.namespace !== undefined ? [metadata.namespace] : [];
    },
    look: (name) => (ensureContents(deps, name) === 'there' ? lookAgainMs : undefined),
  });
}

/** May be done at once, so that nobody finds a namespace without. */
export function ensureContents(deps: NamespaceContentsDeps, name: string): 'there' | 'no-namespace' {
  const { world, hand, rootCertificates } = deps;
  const namespace = world.objects.get(namespaces, undefined, name);
  if (namespace === undefined || namespace.metadata.deletionTimestamp !== undefined) return 'no-namespace';
  const kind = 'ServiceAccount';
  hand.ensure(serviceAccounts, name, { apiVersion: 'v1', kind, metadata: { name: account } });
  const text = rootCertificates();
  const there = world.objects.get(configMaps, name, bundle);
  if (there === undefined) hand.ensure(configMaps, name, bundleOf(text));
  else if ((there['data'] as Record<string, string> | undefined)?.['ca.crt'] !== text)
    hand.update(configMaps, { ...there, data: { 'ca.crt': text } });
  return 'there';
}

function bundleOf(text: string) {
  const annotations = {
    'kubernetes.io/description': 'The certificates by which pods of this namespace know the API server.',
  };
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: bundle, annotations },
    data: { 'ca.crt': text },
  };
}
