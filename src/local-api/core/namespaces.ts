import type { ObjectReader } from './contract.ts';
import { forbidden, notFound } from './refusals.ts';
import type { ApiRequest } from './request.ts';
import { localResources } from './resource-table.ts';

export interface Homes {
  readonly store: ObjectReader;
  readonly namespaces: 'checked' | 'unchecked';
}

/** Nothing new comes into a namespace that is not there, or that is going. */
export function admitHome(
  { namespace, resource }: ApiRequest,
  name: string | undefined,
  { store, namespaces }: Homes,
): void {
  if (namespaces === 'unchecked' || namespace === undefined || resource.scope === 'cluster') return;
  const home = store.get(localResources.namespaces, undefined, namespace);
  if (home === undefined) throw notFound({ resource: localResources.namespaces, name: namespace });
  const isGoing = home.metadata.deletionTimestamp !== undefined || home.status?.['phase'] === 'Terminating';
  if (isGoing)
    throw forbidden(
      { resource, name },
      `unable to create new content in namespace ${namespace} because it is being terminated`,
      [
        {
          reason: 'NamespaceTerminating',
          message: `namespace ${namespace} is being terminated`,
          field: 'metadata.namespace',
        },
      ],
    );
}
