import { apiResources, type JsonObject, sameValue } from '../../api/index.ts';
import { readCertificateRequest } from '../../protocols/x509/index.ts';
import type { ObjectReader } from '../api/api-types.ts';
import { type ApiRequest, nodeNameOfUser, resourceWithSubresource } from '../api/api-types.ts';
import { forbidden, notFound } from '../api/status-errors.ts';
import type { StoredObject } from '../api/stored-object.ts';
import { firstReferencedResource, referencesOnlyManifestObjects } from './pod-references.ts';

const mirrorAnnotation = 'kubernetes.io/config.mirror';

type Objects = Pick<ObjectReader, 'get'>;

/**
 * The NodeRestriction admission plugin: throws a StatusError if a node writes an object it may not
 * write. Other users are not restricted.
 */
export function enforceNodeRestriction(
  request: ApiRequest,
  before: StoredObject | undefined,
  after: StoredObject | undefined,
  store: Objects,
): void {
  const node = nodeNameOfUser(request.user);
  if (node === undefined) return;
  const violation = violationOf(node, request, before, after, store);
  if (violation !== undefined) throw forbidden(request, violation);
}

function violationOf(
  node: string,
  request: ApiRequest,
  before: StoredObject | undefined,
  after: StoredObject | undefined,
  store: Objects,
): string | undefined {
  switch (resourceWithSubresource(request)) {
    case 'nodes':
    case 'nodes/status':
      return after && nodeViolation(node, before, after);
    case 'pods':
      if (after === undefined)
        return before && bindingViolation(node, before, `node "${node}" can only delete`);
      return mirrorPodViolation(node, request, after, store);
    case 'pods/status':
      return before && after && podStatusViolation(node, before, after);
    case 'pods/eviction':
      return before && bindingViolation(node, before, `node ${node} can only evict`);
    case 'certificatesigningrequests':
      return after && signingRequestViolation(node, after);
    case 'persistentvolumeclaims/status':
      return before && after && claimViolation(node, before, after);
    case 'leases':
      return after && nameViolation(node, after, 'node lease');
    case 'csinodes':
      return after && nameViolation(node, after, 'CSINode');
    default:
      return undefined;
  }
}

function nameViolation(node: string, { metadata }: StoredObject, what: string): string | undefined {
  return metadata.name === node
    ? undefined
    : `can only access ${what} with the same name as the requesting node`;
}

const nodeSigners = ['kubernetes.io/kube-apiserver-client-kubelet', 'kubernetes.io/kubelet-serving'];

/** Checks the common name of node certificates; the signer checks the other fields. */
function signingRequestViolation(node: string, { spec }: StoredObject): string | undefined {
  if (!nodeSigners.includes(String(spec?.['signerName']))) return undefined;
  const pem = Buffer.from(String(spec?.['request'] ?? ''), 'base64').toString('utf8');
  try {
    const { commonName } = readCertificateRequest(pem).identity;
    return commonName === `system:node:${node}`
      ? undefined
      : `can only create a node CSR with CN=system:node:${node}`;
  } catch {
    return 'unable to parse csr';
  }
}

function nodeViolation(
  node: string,
  before: StoredObject | undefined,
  after: StoredObject,
): string | undefined {
  const { name } = after.metadata;
  if (name !== node) return `node "${node}" is not allowed to modify node "${name}"`;
  const violation = before === undefined ? newNodeViolation(after) : nodeUpdateViolation(before, after);
  if (violation !== undefined) return `node "${node}" is not allowed to ${violation}`;
  const labels = forbiddenLabels(before?.metadata.labels ?? {}, after.metadata.labels ?? {});
  if (labels === '') return undefined;
  return before === undefined
    ? `node "${node}" is not allowed to set the following labels: ${labels}`
    : `is not allowed to modify labels: ${labels}`;
}

function newNodeViolation({ spec }: StoredObject): string | undefined {
  return spec?.['configSource'] === undefined ? undefined : 'create pods with a non-nil configSource';
}

function nodeUpdateViolation(before: StoredObject, after: StoredObject): string | undefined {
  const source = after.spec?.['configSource'];
  if (source !== undefined && !sameValue(before.spec?.['configSource'], source))
    return 'update configSource to a new non-nil configSource';
  if (!sameValue(before.spec?.['taints'] ?? [], after.spec?.['taints'] ?? [])) return 'modify taints';
  if (!sameValue(before.metadata.ownerReferences ?? [], after.metadata.ownerReferences ?? []))
    return 'modify ownerReferences';
  return undefined;
}

type Labels = Readonly<Record<string, string>>;

/** The Kubernetes labels that nodes may set, with their deprecated beta names. */
const nodeSettableLabels: ReadonlySet<string> = new Set(
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

function forbiddenLabels(before: Labels, after: Labels): string {
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  const forbidden = [...names].filter((name) => before[name] !== after[name] && isForbiddenLabel(name));
  return forbidden.sort().join(', ');
}

function isForbiddenLabel(name: string): boolean {
  const domain = name.includes('/') ? name.slice(0, name.indexOf('/')) : '';
  const isIn = (parent: string) => domain === parent || domain.endsWith(`.${parent}`);
  if (isIn('node-restriction.kubernetes.io')) return true;
  const isAllowed =
    nodeSettableLabels.has(name) || isIn('kubelet.kubernetes.io') || isIn('node.kubernetes.io');
  return (isIn('kubernetes.io') || isIn('k8s.io')) && !isAllowed;
}

function bindingViolation(node: string, { spec }: StoredObject, mayOnly: string): string | undefined {
  return spec?.['nodeName'] === node ? undefined : `${mayOnly} pods with spec.nodeName set to itself`;
}

function mirrorPodViolation(
  node: string,
  request: ApiRequest,
  pod: StoredObject,
  store: Objects,
): string | undefined {
  if (pod.metadata.annotations?.[mirrorAnnotation] === undefined)
    return `pod does not have "${mirrorAnnotation}" annotation, node "${node}" can only create mirror pods`;
  if (pod.spec?.['nodeName'] !== node)
    return `node "${node}" can only create pods with spec.nodeName set to itself`;
  const violation = ownerReferenceViolation(node, request, pod.metadata.ownerReferences ?? [], store);
  if (violation !== undefined) return violation;
  const reference = firstReferencedResource(pod);
  return reference === undefined || referencesOnlyManifestObjects(pod, store)
    ? undefined
    : `node "${node}" can not create pods that reference ${reference}`;
}

function ownerReferenceViolation(
  node: string,
  request: ApiRequest,
  owners: readonly JsonObject[],
  store: Objects,
): string | undefined {
  const [owner] = owners;
  const isItself = owner?.['apiVersion'] === 'v1' && owner['kind'] === 'Node' && owner['name'] === node;
  if (owner === undefined) return `node "${node}" can only create pods with an owner reference set to itself`;
  if (owners.length !== 1 || !isItself)
    return `node "${node}" can only create pods with a single owner reference set to itself`;
  if (owner['controller'] !== true)
    return `node "${node}" can only create pods with a controller owner reference set to itself`;
  if (owner['blockOwnerDeletion'] === true)
    return `node "${node}" must not set blockOwnerDeletion on an owner reference`;
  const found = store.get(apiResources.nodes, undefined, node);
  if (found === undefined) throw notFound({ ...request, resource: apiResources.nodes, name: node });
  const { uid } = found.metadata;
  return owner['uid'] === uid ? undefined : `node ${node} UID mismatch: expected ${owner['uid']} got ${uid}`;
}

function podStatusViolation(node: string, before: StoredObject, after: StoredObject): string | undefined {
  if (before.spec?.['nodeName'] !== node)
    return `node "${node}" can only update pod status for pods with spec.nodeName set to itself`;
  if (!sameValue(before.metadata.labels ?? {}, after.metadata.labels ?? {}))
    return `node "${node}" cannot update labels through pod status`;
  const claims = ['resourceClaimStatuses', 'extendedResourceClaimStatus'];
  const touched = claims.find((name) => !sameValue(before.status?.[name], after.status?.[name]));
  return touched === undefined ? undefined : `node "${node}" cannot update ${touched}`;
}

const claimFields = ['capacity', 'conditions', 'allocatedResources', 'allocatedResourceStatuses'];

function claimViolation(node: string, before: StoredObject, after: StoredObject): string | undefined {
  const rest = (claim: StoredObject) => {
    const status = Object.entries(claim.status ?? {}).filter(([name]) => !claimFields.includes(name));
    return { ...claim, status: Object.fromEntries(status) };
  };
  return sameValue(rest(before), rest(after))
    ? undefined
    : `node "${node}" is not allowed to update other fields of a claim than its capacity and conditions`;
}
