import type { Collection, ObjectRef } from './resource.ts';

/** For messages: "pods/web/status in default". */
export function describePlace(at: Collection | ObjectRef): string {
  const parts = 'name' in at ? [at.name, at.subresource] : [];
  const path = [at.resource.plural, ...parts].filter((part) => part !== undefined).join('/');
  return at.namespace === undefined ? path : `${path} in ${at.namespace}`;
}

/** What is undefined or empty is left out. */
export function queryOf(parameters: Readonly<Record<string, string | number | undefined>>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== undefined && value !== '') query.set(name, String(value));
  }
  return query.size === 0 ? '' : `?${query}`;
}
