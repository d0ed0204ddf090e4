import type { ResourceEntry, ResourceVerb } from '../../core/index.ts';

/** What must be sent to a path. */
export interface ExpectedKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
}

export const deleteOptions: ExpectedKind = { group: 'meta.k8s.io', version: 'v1', kind: 'DeleteOptions' };

/** What a verb of a resource or of one of its parts takes. */
export function expectedKind(
  { resource, subresources }: ResourceEntry,
  subresource: string | undefined,
  verb: ResourceVerb,
): ExpectedKind {
  if (verb === 'delete' || verb === 'deletecollection') return deleteOptions;
  const part = subresources.find(({ name }) => name === subresource);
  return {
    group: part?.group ?? resource.group,
    version: part?.version ?? resource.version,
    kind: part?.kind ?? resource.kind,
  };
}

export function apiVersion({ group, version }: ExpectedKind): string {
  return group === '' ? version : `${group}/${version}`;
}

export function parseApiVersion(text: string): Pick<ExpectedKind, 'group' | 'version'> {
  const at = text.indexOf('/');
  return at < 0 ? { group: '', version: text } : { group: text.slice(0, at), version: text.slice(at + 1) };
}

/** Some are known by several versions, which have all they need in common. */
export function isSameKind(expected: ExpectedKind, written: string): boolean {
  if (written === '' || written === apiVersion(expected)) return true;
  if (expected.kind === 'DeleteOptions') return true;
  return expected.kind === 'Eviction' && written === 'policy/v1beta1';
}
