import { apiResources } from '../../api/index.ts';
import type { ObjectStore } from './object-store.ts';
import { type PodReferences, referencesOf } from './pod-references.ts';
import { type ApiRequest, type ApiVerb, forbidden, nodeOf, targetOf } from './request.ts';
import { selectedField } from './selectors.ts';
import type { StoredObject } from './stored-object.ts';

/** What is wrong with the request of a node; undefined when nothing is. */
type Check = (node: string, request: ApiRequest, store: ObjectStore) => string | undefined;

interface Rule {
  readonly verbs: readonly ApiVerb[];
  readonly check?: Check;
}

const reading: readonly ApiVerb[] = ['get', 'list', 'watch'];

/** All a kubelet has any business with; every other request of a node is a mistake of its kubelet. */
const rules: Readonly<Record<string, Rule>> = {
  nodes: { verbs: [...reading, 'create'], check: ownName },
  'nodes/status': { verbs: ['patch'], check: ownName },
  pods: { verbs: [...reading, 'create', 'delete'], check: ownPods },
  'pods/status': { verbs: ['patch'], check: ownPods },
  events: { verbs: ['create', 'patch'] },
  leases: { verbs: ['get', 'create', 'update'], check: ownLease },
  secrets: { verbs: reading, check: usedBy(({ secrets }, name) => secrets.has(name)) },
  configmaps: { verbs: reading, check: usedBy(({ configMaps }, name) => configMaps.has(name)) },
  serviceaccounts: { verbs: ['get'], check: usedBy(isServiceAccount) },
  'serviceaccounts/token': { verbs: ['create'], check: usedBy(isServiceAccount) },
  persistentvolumeclaims: { verbs: ['get'], check: usedBy(({ claims }, name) => claims.has(name)) },
  'persistentvolumeclaims/status': {
    verbs: ['patch'],
    check: usedBy(({ claims }, name) => claims.has(name)),
  },
  persistentvolumes: { verbs: ['get'], check: ownVolume },
  volumeattachments: { verbs: ['get'], check: ownAttachment },
  csinodes: { verbs: ['get', 'create', 'update', 'delete'], check: ownName },
  csidrivers: { verbs: reading },
  runtimeclasses: { verbs: reading },
  services: { verbs: reading },
  certificatesigningrequests: { verbs: [...reading, 'create'] },
  tokenreviews: { verbs: ['create'] },
  subjectaccessreviews: { verbs: ['create'] },
};

/** Throws when the user may not do that at all. Users that are neither nodes nor on their way to become one may all. */
export function authorize(request: ApiRequest, store: ObjectStore): void {
  const node = nodeOf(request.user);
  if (node !== undefined) authorizeNode(node, request, store);
  else if (request.user.groups.includes('system:bootstrappers')) authorizeBootstrap(request);
}

function authorizeNode(node: string, request: ApiRequest, store: ObjectStore): void {
  const target = targetOf(request);
  const rule = rules[target];
  if (rule === undefined || !rule.verbs.includes(request.verb))
    throw forbidden(request, `cannot ${request.verb} resource "${target}"`);
  const wrong = rule.check?.(node, request, store);
  if (wrong !== undefined) throw forbidden(request, `cannot ${request.verb} resource "${target}": ${wrong}`);
}

function authorizeBootstrap(request: ApiRequest): void {
  const isSigning =
    request.resource.plural === 'certificatesigningrequests' && request.subresource === undefined;
  const isAllowed = isSigning && ['create', 'get', 'list', 'watch'].includes(request.verb);
  if (!isAllowed) throw forbidden(request, `cannot ${request.verb} resource "${targetOf(request)}"`);
}

const unrelated = (node: string) => `no relationship found between node '${node}' and this object`;

/** A list or watch of one object counts as reading that object. */
function nameIn({ verb, name, fieldSelector }: ApiRequest): string | undefined {
  return verb === 'list' || verb === 'watch' ? selectedField(fieldSelector, 'metadata.name') : name;
}

function ownName(node: string, request: ApiRequest): string | undefined {
  // The name of what is to be created is in the object, which is looked at when it is admitted.
  if (request.verb === 'create') return undefined;
  const name = nameIn(request);
  return name === node
    ? undefined
    : `node '${node}' cannot read '${name}', only its own ${request.resource.kind} object`;
}

function ownPods(node: string, request: ApiRequest, store: ObjectStore): string | undefined {
  const { verb, resource, namespace, name = '', fieldSelector } = request;
  if (verb === 'create' || verb === 'delete') return undefined;
  if (verb === 'list' || verb === 'watch')
    return selectedField(fieldSelector, 'spec.nodeName') === node
      ? undefined
      : 'can only list/watch pods with spec.nodeName field selector';
  const pod = store.get(resource, namespace, name);
  return pod === undefined || pod.spec?.['nodeName'] === node ? undefined : unrelated(node);
}

function ownLease(node: string, { verb, namespace, name }: ApiRequest): string | undefined {
  if (namespace !== 'kube-node-lease') return "can only access leases in the 'kube-node-lease' namespace";
  return verb === 'create' || name === node
    ? undefined
    : 'can only access node lease with the same name as the requesting node';
}

function usedBy(uses: (references: PodReferences, name: string) => boolean): Check {
  return (node, request, store) => {
    const name = nameIn(request);
    if (name === undefined || request.namespace === undefined)
      return 'can only read namespaced object of this type by its name';
    const pods = podsOn(node, store).filter(({ metadata }) => metadata.namespace === request.namespace);
    return pods.some((pod) => uses(referencesOf(pod), name)) ? undefined : unrelated(node);
  };
}

function isServiceAccount({ serviceAccount }: PodReferences, name: string): boolean {
  return (serviceAccount ?? 'default') === name;
}

function ownVolume(node: string, { name }: ApiRequest, store: ObjectStore): string | undefined {
  const isUsed = podsOn(node, store).some((pod) =>
    [...referencesOf(pod).claims].some((claim) => {
      const found = store.get(apiResources.persistentVolumeClaims, pod.metadata.namespace, claim);
      return found?.spec?.['volumeName'] === name;
    }),
  );
  return isUsed ? undefined : unrelated(node);
}

function ownAttachment(
  node: string,
  { resource, name = '' }: ApiRequest,
  store: ObjectStore,
): string | undefined {
  const found = store.get(resource, undefined, name);
  return found === undefined || found.spec?.['nodeName'] === node ? undefined : unrelated(node);
}

function podsOn(node: string, store: ObjectStore): readonly StoredObject[] {
  return store.all(apiResources.pods).filter(({ spec }) => spec?.['nodeName'] === node);
}
