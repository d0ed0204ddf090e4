import type { JsonObject } from '../../api/index.ts';
import type { ResourceEntry, SubresourceEntry } from '../api/index.ts';
import { acceptedTypes, type MediaType } from '../http/media-types.ts';

/** The discovery document `/api`; the server address is the same for all client networks. */
export function apiVersions(groups: readonly GroupVersion[], serverAddress: string): JsonObject {
  const versions = groups.filter(({ group }) => group === '').map(({ version }) => version);
  const serverAddressByClientCIDRs = [{ clientCIDR: '0.0.0.0/0', serverAddress }];
  return { kind: 'APIVersions', versions, serverAddressByClientCIDRs };
}

/** The discovery document `/apis`. */
export function apiGroupList(groups: readonly GroupVersion[]): JsonObject {
  const names = new Set(groups.filter(({ group }) => group !== '').map(({ group }) => group));
  return {
    kind: 'APIGroupList',
    apiVersion: 'v1',
    groups: [...names].map((name) => groupBody(groups.filter(({ group }) => group === name))),
  };
}

/** The discovery document `/apis/<group>`. */
export function apiGroup(versions: readonly GroupVersion[]): JsonObject {
  return { kind: 'APIGroup', apiVersion: 'v1', ...groupBody(versions) };
}

function groupBody(versions: readonly GroupVersion[]): JsonObject {
  const entries = versions.map((each) => ({ groupVersion: groupVersionName(each), version: each.version }));
  return { name: versions[0]?.group ?? '', versions: entries, preferredVersion: entries[0] };
}

/** The discovery documents `/api/v1` and `/apis/<group>/<version>`. */
export function apiResourceList(groupVersion: GroupVersion): JsonObject {
  return {
    kind: 'APIResourceList',
    ...(groupVersion.group === '' ? {} : { apiVersion: 'v1' }),
    groupVersion: groupVersionName(groupVersion),
    resources: groupVersion.entries.flatMap((entry) => [
      resourceBody(entry),
      ...sorted(entry.subresources).map((part) => subresourceBody(entry, part)),
    ]),
  };
}

function resourceBody({ resource, singular, verbs, shortNames, categories }: ResourceEntry): JsonObject {
  return {
    name: resource.plural,
    singularName: singular,
    namespaced: resource.scope === 'namespace',
    kind: resource.kind,
    verbs: verbs.toSorted(),
    ...(shortNames.length === 0 ? {} : { shortNames }),
    ...(categories.length === 0 ? {} : { categories }),
  };
}

function subresourceBody({ resource }: ResourceEntry, part: SubresourceEntry): JsonObject {
  return {
    name: `${resource.plural}/${part.name}`,
    singularName: '',
    namespaced: resource.scope === 'namespace',
    ...(part.group === undefined ? {} : { group: part.group }),
    ...(part.version === undefined ? {} : { version: part.version }),
    kind: part.kind ?? resource.kind,
    verbs: part.verbs.toSorted(),
  };
}

export function sorted(parts: readonly SubresourceEntry[]): readonly SubresourceEntry[] {
  return parts.toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

/** The resources of one group version. */
export interface GroupVersion {
  /** The API group; empty for the core group. */
  readonly group: string;
  readonly version: string;
  /** The resources sorted by name. */
  readonly entries: readonly ResourceEntry[];
}

/**
 * The preferred groups for a resource name that occurs in several groups; other groups come after
 * them.
 */
const groupOrder = [
  '',
  'events.k8s.io',
  'authentication.k8s.io',
  'authorization.k8s.io',
  'certificates.k8s.io',
  'policy',
  'storage.k8s.io',
  'scheduling.k8s.io',
  'coordination.k8s.io',
  'node.k8s.io',
];

/** The group versions in the order in which clients prefer them. */
export function groupVersions(all: readonly ResourceEntry[]): readonly GroupVersion[] {
  const found = new Map<string, ResourceEntry[]>();
  for (const entry of all) {
    const name = groupVersionName(entry.resource);
    found.set(name, [...(found.get(name) ?? []), entry]);
  }
  const rank = (group: string) =>
    groupOrder.includes(group) ? groupOrder.indexOf(group) : groupOrder.length;
  return [...found.values()]
    .map((entries) => ({ ...partOf(entries), entries: entries.toSorted(byPlural) }))
    .sort((a, b) => rank(a.group) - rank(b.group) || (a.group < b.group ? -1 : 1));
}

function partOf(entries: readonly ResourceEntry[]): { readonly group: string; readonly version: string } {
  const { group = '', version = '' } = entries[0]?.resource ?? {};
  return { group, version };
}

function byPlural(a: ResourceEntry, b: ResourceEntry): number {
  return a.resource.plural < b.resource.plural ? -1 : 1;
}

function groupVersionName({ group, version }: Pick<GroupVersion, 'group' | 'version'>): string {
  return group === '' ? version : `${group}/${version}`;
}

/** The path of a group version without leading slash, such as `api/v1` or `apis/policy/v1`. */
export function groupVersionPath({ group, version }: Pick<GroupVersion, 'group' | 'version'>): string {
  return group === '' ? `api/${version}` : `apis/${group}/${version}`;
}

export const aggregatedType = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';

/** Whether the Accept header prefers aggregated discovery. */
export function acceptsAggregated(accept: string | undefined): boolean {
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

/** The aggregated discovery document of `/api` or `/apis`. */
export function aggregatedDiscovery(groups: readonly GroupVersion[], of: 'core' | 'named'): JsonObject {
  const shown = groups.filter(({ group }) => (group === '') === (of === 'core'));
  const names = [...new Set(shown.map(({ group }) => group))];
  return {
    kind: 'APIGroupDiscoveryList',
    apiVersion: 'apidiscovery.k8s.io/v2',
    metadata: {},
    items: names.map((name) => ({
      metadata: name === '' ? {} : { name },
      versions: shown.filter(({ group }) => group === name).map(aggregatedVersion),
    })),
  };
}

function aggregatedVersion({ version, entries }: GroupVersion): JsonObject {
  return { version, resources: entries.map(aggregatedResource), freshness: 'Current' };
}

function aggregatedResource(entry: ResourceEntry): JsonObject {
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
      : { subresources: sorted(subresources).map((part) => aggregatedSubresource(entry, part)) }),
  };
}

/** Group and version of the response kind are empty if they are those of the resource. */
function aggregatedSubresource({ resource }: ResourceEntry, part: SubresourceEntry): JsonObject {
  const { group = '', version = '', kind = resource.kind } = part;
  return {
    subresource: part.name,
    responseKind: { group, version, kind },
    verbs: part.verbs.toSorted(),
  };
}
