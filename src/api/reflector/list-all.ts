import { KubelingError } from '../../lib/index.ts';
import type { ApiClient, ApiList, ApiObject, ListQuery } from '../client/client.ts';

/** The maximum number of list pages, more than a node ever needs: an endless list is aborted. */
const mostPages = 1_000;

/**
 * Lists all objects of a query page by page, and returns them with the version of the list. If one
 * page fails, the whole list fails. A response without a version or without items is an error and
 * is not treated as an empty list.
 */
export async function listAll<T extends ApiObject>(
  client: Pick<ApiClient, 'list'>,
  query: ListQuery,
  signal: AbortSignal,
): Promise<ApiList<T>> {
  const items: T[] = [];
  let page = checkedPage(query, await client.list<T>(query, signal));
  for (let pages = 1; ; pages++) {
    for (const item of page.items) items.push(item);
    const next = page.metadata.continue ?? '';
    if (next === '') return { metadata: { resourceVersion: page.metadata.resourceVersion }, items };
    if (pages === mostPages) throw badList(query, `it has more than ${mostPages} pages`);
    // The continue token already includes the resource version; API servers reject a request with
    // both.
    const { resourceVersion: _, ...rest } = query;
    page = checkedPage(query, await client.list<T>({ ...rest, continue: next }, signal));
  }
}

function checkedPage<T>(query: ListQuery, page: ApiList<T>): ApiList<T> {
  const { metadata, items } = page as Partial<ApiList<T>> & { items?: readonly T[] | null };
  const version = metadata?.resourceVersion;
  if (typeof version !== 'string' || version === '') throw badList(query, 'it has no version');
  // Some servers send empty lists as null; a response without the field is an error.
  if (items === null) return { ...page, items: [] };
  if (!Array.isArray(items)) throw badList(query, 'it has no items');
  return page;
}

function badList({ resource }: ListQuery, why: string): KubelingError {
  return new KubelingError('API_BAD_ANSWER', `Cannot read the list of ${resource.plural} as ${why}`);
}
