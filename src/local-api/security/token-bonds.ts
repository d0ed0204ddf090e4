import { type ApiResource, apiResources } from '../../api/index.ts';
import type { Clock } from '../../lib/index.ts';
import type { ObjectReader } from '../core/index.ts';
import type { Bearer, TokenClaims } from '../kinds/index.ts';

export interface BondDeps {
  readonly objects: Pick<ObjectReader, 'get'>;
  readonly clock: Pick<Clock, 'now'>;
}

/** Whoever is being deleted may still say who it is while it ends, and a little longer. */
const graceMs = 60_000;
const invalidated = 'service account token has been invalidated';

/** Why a token is worth nothing any more, although its time is not over; undefined when it still is. */
export function boundComplaint(claims: TokenClaims, deps: BondDeps): string | undefined {
  const { namespace, serviceaccount, pod, secret, node } = claims['kubernetes.io'];
  const state = (resource: ApiResource, within: string | undefined, bearer: Bearer | undefined) =>
    bearer === undefined ? 'there' : stateOf(resource, within, bearer, deps);
  const account = state(apiResources.serviceAccounts, namespace, serviceaccount);
  if (account !== 'there') return `service account ${namespace}/${serviceaccount.name} ${account}`;
  const bonds = [
    state(apiResources.pods, namespace, pod),
    state(apiResources.secrets, namespace, secret),
    // The node of a pod is told for information: the token lives as long as the pod.
    pod === undefined ? state(apiResources.nodes, undefined, node) : 'there',
  ];
  return bonds.every((bond) => bond === 'there') ? undefined : invalidated;
}

function stateOf(
  resource: ApiResource,
  namespace: string | undefined,
  { name, uid }: Bearer,
  { objects, clock }: BondDeps,
): 'there' | 'is not there' | 'is another one of its name' | 'has been deleted' {
  const found = objects.get(resource, namespace, name);
  if (found === undefined) return 'is not there';
  const { uid: foundUid, deletionTimestamp } = found.metadata;
  if (foundUid !== uid) return 'is another one of its name';
  const endMs = deletionTimestamp === undefined ? Number.POSITIVE_INFINITY : Date.parse(deletionTimestamp);
  return endMs < clock.now() - graceMs ? 'has been deleted' : 'there';
}
