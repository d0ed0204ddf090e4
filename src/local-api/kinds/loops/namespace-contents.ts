import type { Logger } from '../../../lib/index.ts';
import type { ApiLoop, World } from '../../core/index.ts';
import { configMaps, namespaces, serviceAccounts } from '../resources.ts';
import { keyedLoop } from './keyed-loop.ts';
import type { ServerHand } from './server-hand.ts';

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
