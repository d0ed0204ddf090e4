import { type ApiClient, apiResources, isApiCode } from '../../api/index.ts';
import { KubelingError } from '../../lib/index.ts';
import type { ResourceClaim } from '../../resources/index.ts';

/** As the API has it now. One that is not there is told of in the words in which users know it: OBJECT_NOT_FOUND. */
export async function fetchClaim(
  api: Pick<ApiClient, 'get'>,
  { namespace, name }: { readonly namespace: string; readonly name: string },
  signal: AbortSignal,
): Promise<ResourceClaim> {
  const resource = apiResources.resourceClaims;
  try {
    return await api.get<ResourceClaim>({ resource, namespace, name }, {}, signal);
  } catch (error) {
    if (!isApiCode(error, 'API_NOT_FOUND')) throw error;
    const what = `${resource.plural}.${resource.group} ${JSON.stringify(name)}`;
    throw new KubelingError('OBJECT_NOT_FOUND', `${what} not found`);
  }
}
