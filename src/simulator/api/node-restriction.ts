import { apiResources, type JsonObject, sameValue } from '../../api/index.ts';
import type { ObjectStore } from './object-store.ts';
import { referencedResource } from './pod-references.ts';
import { type ApiRequest, forbidden, nodeOf, notFound, targetOf } from './request.ts';
import type { StoredObject } from './stored-object.ts';

const mirrorAnnotation = 'kubernetes.io/config.mirror';

/** Throws when a node writes what is not its own to write; other users write what they like. */
export function admitWrite(
  request: ApiRequest,
  before: StoredObject | undefined,
  after: StoredObject | undefined,
  store: ObjectStore,
): void {
  const node = nodeOf(request.user);
  if (node === undefined) return;
  const wrong = complaint(node, request, before, after, store);
  if (wrong !== undefined) throw forbidden(request, `is not allowed to do that: node "${node}" ${wrong}`);
}

function complaint(
  node: string,
  request: ApiRequest,
  before: StoredObject | undefined,
  after: StoredObject | undefined,
  store: ObjectStore,
): string | undefined {
  switch (targetOf(request)) {
    case 'nodes':
      return after && (otherName(node, after) ?? newNodeComplaint(after));
    case 'nodes/status':
      return before && after && nodeComplaint(before, after);
    case 'pods':
      if (after === undefined) return before && unboundPod(node, before);
      return mirrorComplaint(node, request, after, store);
    case 'pods/status':
      return before && after && podStatusComplaint(node, before, after);
    case 'persistentvolumeclaims/status':
      return before && after && claimComplaint(before, after);
    case 'leases':
    case 'csinodes':
      return after && otherName(node, after);
    default:
      return undefined;
  }
}

function otherName(node: string, { kind, metadata }: StoredObject): string | undefined {
  return metadata.name === node
    ? undefined
    : `can only write the ${kind} of its own name: this is "${metadata.name}"`;
}

function newNodeComplaint({ metadata, spec }: StoredObject): string | undefined {
  if (spec?.['configSource'] !== undefined) return 'must not set configSource';
  return labelComplaint({}, metadata.labels ?? {});
}

function nodeComplaint(before: StoredObject, after: StoredObject): string | undefined {
  if (!sameValue(before.spec?.['taints'], after.spec?.['taints'])) return 'is not allowed to modify taints';
  if (!sameValue(before.metadata.ownerReferences, after.metadata.ownerReferences))
    return 'is not allowed to modify ownerReferences';
  return labelComplaint(before.metadata.labels ?? {}, after.metadata.labels ?? {});
}

type Labels = Readonly<Record<string, string>>;

/** Labels of Kubernetes a node may set; with beta and stable names of each. */
const nodesOwnLabels: ReadonlySet<string> = new Set(
  ['hostname', 'os', 'arch']
    .map((name) => `kubernetes.io/${name}`)
    .concat(
      ['zone', 'region'].flatMap((name) => [
        `topology.kubernetes.io/${name}`,
        `failure-domain.beta.kubernetes.io/${name}`,
      ]),
    )
    .concat(['os', 'arch', 'instance-type'].map((name) => `beta.kubernetes.io/${name}`))
    .concat('node.kubernetes.io/instance-type'),
);

function labelComplaint(before: Labels, after: Labels): string | undefined {
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  const wrong = [...names].filter((name) => before[name] !== after[name] && isForbiddenLabel(name)).sort();
  return wrong.length === 0 ? undefined : `is not allowed to modify labels: ${wrong.join(', ')}`;
}

function isForbiddenLabel(name: string): boolean {
  const domain = name.includes('/') ? name.slice(0, name.indexOf('/')) : '';
  const isIn = (parent: string) => domain === parent || domain.endsWith(`.${parent}`);
  if (isIn('node-restriction.kubernetes.io')) return true;
  const isAllowed = nodesOwnLabels.has(name) || isIn('kubelet.kubernetes.io') || isIn('node.kubernetes.io');
  return (isIn('kubernetes.io') || isIn('k8s.io')) && !isAllowed;
}

function unboundPod(node: string, { spec }: StoredObject): string | undefined {
  return spec?.['nodeName'] === node ? undefined : 'can only delete pods with spec.nodeName set to itself';
}

function mirrorComplaint(
  node: string,
  request: ApiRequest,
  pod: StoredObject,
  store: ObjectStore,
): string | undefined {
  if (pod.metadata.annotations?.[mirrorAnnotation] === undefined)
    return `can only create mirror pods: the pod has no "${mirrorAnnotation}" annotation`;
  if (pod.spec?.['nodeName'] !== node) return 'can only create pods with spec.nodeName set to itself';
  const wrong = ownerComplaint(node, request, pod.metadata.ownerReferences ?? [], store);
  if (wrong !== undefined) return wrong;
  const reference = referencedResource(pod);
  return reference === undefined ? undefined : `can not create pods that reference ${reference}`;
}

function ownerComplaint(
  node: string,
  request: ApiRequest,
  owners: readonly JsonObject[],
  store: ObjectStore,
): string | undefined {
  const [owner] = owners;
  const isItself = owner?.['apiVersion'] === 'v1' && owner['kind'] === 'Node' && owner['name'] === node;
  if (owners.length !== 1 || !isItself)
    return 'can only create pods with a single owner reference set to itself';
  if (owner['controller'] !== true)
    return 'can only create pods with a controller owner reference set to itself';
  if (owner['blockOwnerDeletion'] === true) return 'must not set blockOwnerDeletion on an owner reference';
  const found = store.get(apiResources.nodes, undefined, node);
  if (found === undefined) throw notFound({ ...request, resource: apiResources.nodes, name: node });
  const { uid } = found.metadata;
  return owner['uid'] === uid ? undefined : `UID mismatch: expected ${uid} got ${owner['uid']}`;
}

function podStatusComplaint(node: string, before: StoredObject, after: StoredObject): string | undefined {
  if (before.spec?.['nodeName'] !== node)
    return 'can only update pod status for pods with spec.nodeName set to itself';
  if (!sameValue(before.metadata.labels ?? {}, after.metadata.labels ?? {}))
    return 'cannot update labels through pod status';
  const claims = ['resourceClaimStatuses', 'extendedResourceClaimStatus'];
  const touched = claims.find((name) => !sameValue(before.status?.[name], after.status?.[name]));
  return touched === undefined ? undefined : `cannot update ${touched}`;
}

const claimFields = ['capacity', 'conditions', 'allocatedResources', 'allocatedResourceStatuses'];

function claimComplaint(before: StoredObject, after: StoredObject): string | undefined {
  const rest = (claim: StoredObject) => {
    const status = Object.entries(claim.status ?? {}).filter(([name]) => !claimFields.includes(name));
    return { ...claim, status: Object.fromEntries(status) };
  };
  return sameValue(rest(before), rest(after))
    ? undefined
    : 'is not allowed to update other fields of a claim than its capacity and conditions';
}
