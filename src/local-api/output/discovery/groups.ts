import type { ResourceEntry } from '../../core/index.ts';

/** All resources of one version of a group. */
export interface GroupVersion {
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
  /** By name. */
  readonly entries: readonly ResourceEntry[];
}

/** What is asked first for a name that several groups know; groups that are not here come last. */
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

/** In the order in which clients should prefer them. */
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

export function groupVersionName({ group, version }: Pick<GroupVersion, 'group' | 'version'>): string {
  return group === '' ? version : `${group}/${version}`;
}

/** Where it is found, without the slash in front, such as `api/v1` or `apis/policy/v1`. */
export function groupVersionPath({ group, version }: Pick<GroupVersion, 'group' | 'version'>): string {
  return group === '' ? `api/${version}` : `apis/${group}/${version}`;
}
