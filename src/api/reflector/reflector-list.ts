import { KubelingError } from '../../lib/index.ts';
import type { ApiClient, ApiList, ApiObject, ListQuery } from '../client/client.ts';

/** Far more than a node ever asks for: a server that never comes to an end is not followed for ever. */
const mostPages = 1_000;

/**
 * All objects of a query, page by page. Answers the version of the whole list; fails whole, never with a part. An answer
 * without a version or without objects is an error: it must not be taken for an empty list.
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
    // The token stands for the version: both together are refused.
    const { resourceVersion: _, ...rest } = query;
    page = checkedPage(query, await client.list<T>({ ...rest, continue: next }, signal));
  }
}

function checkedPage<T>(query: ListQuery, page: ApiList<T>): ApiList<T> {
  const { metadata, items } = page as Partial<ApiList<T>> & { items?: readonly T[] | null };
  const version = metadata?.resourceVersion;
  if (typeof version !== 'string' || version === '') throw badList(query, 'it has no version');
  // Empty lists are written as null by some servers; no list at all is no answer.
  if (items === null) return { ...page, items: [] };
  if (!Array.isArray(items)) throw badList(query, 'it has no items');
  return page;
}

function badList({ resource }: ListQuery, why: string): KubelingError {
  return new KubelingError('API_BAD_ANSWER', `Cannot read the list of ${resource.plural} as ${why}`);
}
