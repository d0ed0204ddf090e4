import { type ApiResource, apiResources } from '../../api/index.ts';
import type { ObjectReader } from '../api/api-types.ts';
import { type ApiRequest, nodeNameOfUser, resourceWithSubresource } from '../api/api-types.ts';
import { forbiddenForUser } from '../api/status-errors.ts';
import type { StoredObject } from '../api/stored-object.ts';
import { requiredFieldValue } from '../selectors/selection.ts';
import { isFromManifest, type PodObjectReferences, referencesOf } from './pod-references.ts';

/** The authorization attributes of a node request. */
export interface NodeRequest {
  /** The request verb; a verb that no node rule contains is rejected. */
  readonly verb: string;
  readonly resource: Pick<ApiResource, 'group' | 'plural'>;
  readonly subresource?: string | undefined;
  readonly namespace?: string | undefined;
  readonly name?: string | undefined;
  readonly fieldSelector?: string | undefined;
}

type Objects = Pick<ObjectReader, 'get' | 'all'>;

/** Returns why the request is rejected; undefined if it is allowed. */
type Check = (node: string, request: NodeRequest, objects: Objects) => string | undefined;

interface Rule {
  readonly groups?: readonly string[];
  /** The verbs that the kubelet of kubeling uses. */
  readonly verbs: readonly string[];
  /** Further verbs that Kubernetes allows nodes to use. */
  readonly additionalVerbs?: readonly string[];
  readonly check?: Check;
}

const readVerbs = ['get', 'list', 'watch'];
const storage = ['storage.k8s.io'];

const rules: Readonly<Record<string, Rule>> = {
  nodes: { verbs: [...readVerbs, 'create'], additionalVerbs: ['update', 'patch'], check: checkOwnNode },
  'nodes/status': { verbs: ['patch'], additionalVerbs: ['update'], check: checkOwnNode },
  pods: { verbs: [...readVerbs, 'create', 'delete'], check: checkOwnPods },
  'pods/status': { verbs: ['patch'], additionalVerbs: ['update'], check: checkOwnPods },
  'pods/eviction': { verbs: [], additionalVerbs: ['create'], check: checkOwnPods },
  events: { groups: ['', 'events.k8s.io'], verbs: ['create', 'patch'], additionalVerbs: ['update'] },
  leases: {
    groups: ['coordination.k8s.io'],
    verbs: ['get', 'create', 'update'],
    additionalVerbs: ['patch', 'delete'],
    check: checkOwnLease,
  },
  secrets: { verbs: readVerbs, check: referencedByPods(({ secrets }, name) => secrets.has(name)) },
  configmaps: { verbs: readVerbs, check: referencedByPods(({ configMaps }, name) => configMaps.has(name)) },
  serviceaccounts: { verbs: ['get'], check: referencedByPods(isServiceAccount) },
  'serviceaccounts/token': { verbs: ['create'], check: referencedByPods(isServiceAccount) },
  persistentvolumeclaims: { verbs: ['get'], check: referencedByPods(({ claims }, name) => claims.has(name)) },
  'persistentvolumeclaims/status': {
    verbs: ['patch'],
    additionalVerbs: ['get', 'update'],
    check: referencedByPods(({ claims }, name) => claims.has(name)),
  },
  persistentvolumes: { verbs: ['get'], check: checkOwnVolume },
  volumeattachments: { groups: storage, verbs: ['get'], check: checkOwnAttachment },
  csinodes: {
    groups: storage,
    verbs: ['get', 'create', 'update', 'delete'],
    additionalVerbs: ['patch'],
    check: checkOwnCsiNode,
  },
  csidrivers: { groups: storage, verbs: readVerbs },
  runtimeclasses: { groups: ['node.k8s.io'], verbs: readVerbs },
  services: { verbs: readVerbs },
  certificatesigningrequests: { groups: ['certificates.k8s.io'], verbs: [...readVerbs, 'create'] },
  tokenreviews: { groups: ['authentication.k8s.io'], verbs: ['create'] },
  subjectaccessreviews: { groups: ['authorization.k8s.io'], verbs: ['create'] },
  localsubjectaccessreviews: { groups: ['authorization.k8s.io'], verbs: [], additionalVerbs: ['create'] },
};

/**
 * Throws a StatusError if the user may not make the request. Users other than nodes and bootstrap
 * tokens are always allowed. Stricter than the Node authorizer, for the simulated API of the tests.
 */
export function authorize(request: ApiRequest, store: Objects): void {
  const node = nodeNameOfUser(request.user);
  if (node !== undefined) authorizeNode(node, request, store);
  else if (request.user.groups.includes('system:bootstrappers')) authorizeBootstrap(request);
}

/**
 * Verbs that the kubelet of kubeling never uses are rejected even if Kubernetes allows nodes to use
 * them.
 */
function authorizeNode(node: string, request: ApiRequest, store: Objects): void {
  const target = resourceWithSubresource(request);
  if (rules[target]?.verbs.includes(request.verb) !== true)
    throw forbiddenForUser(request, `cannot ${request.verb} resource "${target}"`);
  const decision = authorizeNodeRequest(node, request, store);
  if (decision.may === 'no')
    throw forbiddenForUser(request, `cannot ${request.verb} resource "${target}": ${decision.why}`);
}

export type NodeDecision =
  | { readonly may: 'yes' }
  /** Why the request is rejected; empty if no node rule matches. */
  | { readonly may: 'no'; readonly why: string };

/** The Node authorizer, without the rules that NodeRestriction checks at admission. */
export function authorizeNodeRequest(node: string, request: NodeRequest, objects: Objects): NodeDecision {
  const { verb, resource } = request;
  const rule = Object.hasOwn(rules, resourceWithSubresource(request))
    ? rules[resourceWithSubresource(request)]
    : undefined;
  const { groups = [''], verbs = [], additionalVerbs = [] } = rule ?? {};
  const isKnown = rule !== undefined && groups.includes(resource.group);
  if (!isKnown || !(verbs.includes(verb) || additionalVerbs.includes(verb))) return { may: 'no', why: '' };
  const why = rule.check?.(node, request, objects);
  return why === undefined ? { may: 'yes' } : { may: 'no', why };
}

function authorizeBootstrap(request: ApiRequest): void {
  const isSigning =
    request.resource.plural === 'certificatesigningrequests' && request.subresource === undefined;
  const isAllowed = isSigning && ['create', 'get', 'list', 'watch'].includes(request.verb);
  if (!isAllowed)
    throw forbiddenForUser(request, `cannot ${request.verb} resource "${resourceWithSubresource(request)}"`);
}

const unrelated = (node: string) => `no relationship found between node '${node}' and this object`;

/** A list or watch with a metadata.name selector counts as a read of that object. */
function requestedName({ verb, name, fieldSelector }: NodeRequest): string | undefined {
  const isMany = verb === 'list' || verb === 'watch';
  return isMany ? (name ?? requiredFieldValue(fieldSelector, 'metadata.name')) : name;
}

function checkOwnNode(node: string, request: NodeRequest): string | undefined {
  // A create is allowed here: the NodeRestriction admission plugin checks the name of the new Node.
  const name = requestedName(request);
  if (request.verb === 'create' || name === node) return undefined;
  if (name === undefined) return `node '${node}' cannot read all nodes, only its own Node object`;
  return readVerbs.includes(request.verb)
    ? `node '${node}' cannot read '${name}', only its own Node object`
    : `node "${node}" is not allowed to modify node "${name}"`;
}

function checkOwnCsiNode(node: string, { verb, name }: NodeRequest): string | undefined {
  return verb === 'create' || name === node
    ? undefined
    : 'can only access CSINode with the same name as the requesting node';
}

function checkOwnPods(node: string, request: NodeRequest, objects: Objects): string | undefined {
  const { verb, namespace, name = '', subresource, fieldSelector } = request;
  // Creates and deletes of pods are allowed here: the NodeRestriction admission plugin checks them.
  if (subresource === undefined && (verb === 'create' || verb === 'delete')) return undefined;
  if (verb === 'list' || verb === 'watch')
    return requiredFieldValue(fieldSelector, 'spec.nodeName') === node
      ? undefined
      : 'can only list/watch pods with spec.nodeName field selector';
  const pod = objects.get(apiResources.pods, namespace, name);
  return pod === undefined || pod.spec?.['nodeName'] === node ? undefined : unrelated(node);
}

function checkOwnLease(node: string, { verb, namespace, name }: NodeRequest): string | undefined {
  if (namespace !== 'kube-node-lease')
    return 'can only access leases in the "kube-node-lease" system namespace';
  return verb === 'create' || name === node
    ? undefined
    : 'can only access node lease with the same name as the requesting node';
}

function referencedByPods(uses: (references: PodObjectReferences, name: string) => boolean): Check {
  return (node, request, objects) => {
    const name = requestedName(request);
    if (name === undefined || request.namespace === undefined)
      return 'can only read namespaced object of this type by its name';
    const pods = podsOn(node, objects).filter(({ metadata }) => metadata.namespace === request.namespace);
    const isUsed =
      pods.some((pod) => uses(referencesOf(pod), name)) ||
      isFromManifest(request.resource, request.namespace, name, objects);
    return isUsed ? undefined : unrelated(node);
  };
}

function isServiceAccount({ serviceAccount }: PodObjectReferences, name: string): boolean {
  return (serviceAccount ?? 'default') === name;
}

function checkOwnVolume(node: string, { name }: NodeRequest, objects: Objects): string | undefined {
  const isUsed = podsOn(node, objects).some((pod) =>
    [...referencesOf(pod).claims].some((claim) => {
      const found = objects.get(apiResources.persistentVolumeClaims, pod.metadata.namespace, claim);
      return found?.spec?.['volumeName'] === name;
    }),
  );
  return isUsed || isFromManifest(apiResources.persistentVolumes, undefined, name ?? '', objects)
    ? undefined
    : unrelated(node);
}

function checkOwnAttachment(node: string, { name = '' }: NodeRequest, objects: Objects): string | undefined {
  const found = objects.get(apiResources.volumeAttachments, undefined, name);
  return found === undefined || found.spec?.['nodeName'] === node ? undefined : unrelated(node);
}

function podsOn(node: string, objects: Objects): readonly StoredObject[] {
  return objects.all(apiResources.pods).filter(({ spec }) => spec?.['nodeName'] === node);
}
