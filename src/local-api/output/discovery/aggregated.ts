import type { JsonObject } from '../../../api/index.ts';
import type { ResourceEntry, SubresourceEntry } from '../../core/index.ts';
import { acceptedTypes, type MediaType } from '../../http/media-types.ts';
import type { GroupVersion } from './groups.ts';
import { sorted } from './legacy.ts';

export const aggregatedType = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';

/** Whether a caller would rather have everything at once than group by group. */
export function wantsAggregated(accept: string | undefined): boolean {
  const first = acceptedTypes(accept ?? '').find((type) => isAggregated(type) || isPlain(type));
  return first !== undefined && isAggregated(first);
}

function isAggregated({ essence, parameters }: MediaType): boolean {
  return (
    essence === 'application/json' &&
    parameters.get('g') === 'apidiscovery.k8s.io' &&
    parameters.get('v') === 'v2' &&
    parameters.get('as') === 'APIGroupDiscoveryList'
  );
}

function isPlain({ essence, parameters }: MediaType): boolean {
  return ['application/json', 'application/*', '*/*'].includes(essence) && !parameters.has('as');
}

/** All of `/api` or of `/apis` in one answer. */
export function aggregatedDiscovery(groups: readonly GroupVersion[], of: 'core' | 'named'): JsonObject {
  const shown = groups.filter(({ group }) => (group === '') === (of === 'core'));
  const names = [...new Set(shown.map(({ group }) => group))];
  return {
    kind: 'APIGroupDiscoveryList',
    apiVersion: 'apidiscovery.k8s.io/v2',
    metadata: {},
    items: names.map((name) => ({
      metadata: name === '' ? {} : { name },
      versions: shown.filter(({ group }) => group === name).map(versionBody),
    })),
  };
}

function versionBody({ version, entries }: GroupVersion): JsonObject {
  return { version, resources: entries.map(resourceBody), freshness: 'Current' };
}

function resourceBody(entry: ResourceEntry): JsonObject {
  const { resource, singular, verbs, shortNames, categories, subresources } = entry;
  return {
    resource: resource.plural,
    responseKind: { group: '', version: '', kind: resource.kind },
    scope: resource.scope === 'namespace' ? 'Namespaced' : 'Cluster',
    singularResource: singular,
    verbs: verbs.toSorted(),
    ...(shortNames.length === 0 ? {} : { shortNames }),
    ...(categories.length === 0 ? {} : { categories }),
    ...(subresources.length === 0
      ? {}
      : { subresources: sorted(subresources).map((part) => partBody(entry, part)) }),
  };
}

/** Group and version are left empty where they are those of the list the kind stands in. */
function partBody({ resource }: ResourceEntry, part: SubresourceEntry): JsonObject {
  const { group = '', version = '', kind = resource.kind } = part;
  return {
    subresource: part.name,
    responseKind: { group, version, kind },
    verbs: part.verbs.toSorted(),
  };
}
