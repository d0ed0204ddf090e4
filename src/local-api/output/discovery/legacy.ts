import type { JsonObject } from '../../../api/index.ts';
import type { ResourceEntry, SubresourceEntry } from '../../core/index.ts';
import { type GroupVersion, groupVersionName } from './groups.ts';

/** What `/api` answers; the address is where clients of any network find this server. */
export function apiVersions(groups: readonly GroupVersion[], serverAddress: string): JsonObject {
  const versions = groups.filter(({ group }) => group === '').map(({ version }) => version);
  const serverAddressByClientCIDRs = [{ clientCIDR: '0.0.0.0/0', serverAddress }];
  return { kind: 'APIVersions', versions, serverAddressByClientCIDRs };
}

/** What `/apis` answers. */
export function apiGroupList(groups: readonly GroupVersion[]): JsonObject {
  const names = new Set(groups.filter(({ group }) => group !== '').map(({ group }) => group));
  return {
    kind: 'APIGroupList',
    apiVersion: 'v1',
    groups: [...names].map((name) => groupBody(groups.filter(({ group }) => group === name))),
  };
}

/** What `/apis/<group>` answers. */
export function apiGroup(versions: readonly GroupVersion[]): JsonObject {
  return { kind: 'APIGroup', apiVersion: 'v1', ...groupBody(versions) };
}

function groupBody(versions: readonly GroupVersion[]): JsonObject {
  const told = versions.map((each) => ({ groupVersion: groupVersionName(each), version: each.version }));
  return { name: versions[0]?.group ?? '', versions: told, preferredVersion: told[0] };
}

/** What `/api/v1` and `/apis/<group>/<version>` answer. */
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
