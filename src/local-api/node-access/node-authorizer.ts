import { type ApiResource, apiResources } from '../../api/index.ts';
import type { ObjectReader } from '../api/api-types.ts';
import { type ApiRequest, nodeOf, targetOf } from '../api/api-types.ts';
import { forbiddenTo } from '../api/status-errors.ts';
import type { StoredObject } from '../api/stored-object.ts';
import { selectedField } from '../selectors/selection.ts';
import { isFromManifest, type PodReferences, referencesOf } from './pod-references.ts';

/** What a node would like to do, before anything else is known of it. */
export interface NodeWish {
  /** Of all there are, those a node never has are no verbs of its either. */
  readonly verb: string;
  readonly resource: Pick<ApiResource, 'group' | 'plural'>;
  readonly subresource?: string | undefined;
  readonly namespace?: string | undefined;
  readonly name?: string | undefined;
  readonly fieldSelector?: string | undefined;
}

type Objects = Pick<ObjectReader, 'get' | 'all'>;

/** What is wrong with the wish of a node; undefined when nothing is. */
type Check = (node: string, wish: NodeWish, objects: Objects) => string | undefined;

interface Rule {
  readonly groups?: readonly string[];
  /** What a kubelet has any business with. */
  readonly verbs: readonly string[];
  /** What a node may besides, though our kubelet never does it. */
  readonly more?: readonly string[];
  readonly check?: Check;
}

const reading = ['get', 'list', 'watch'];
const storage = ['storage.k8s.io'];

const rules: Readonly<Record<string, Rule>> = {
  nodes: { verbs: [...reading, 'create'], more: ['update', 'patch'], check: ownNode },
  'nodes/status': { verbs: ['patch'], more: ['update'], check: ownNode },
  pods: { verbs: [...reading, 'create', 'delete'], check: ownPods },
  'pods/status': { verbs: ['patch'], more: ['update'], check: ownPods },
  'pods/eviction': { verbs: [], more: ['create'], check: ownPods },
  events: { groups: ['', 'events.k8s.io'], verbs: ['create', 'patch'], more: ['update'] },
  leases: {
    groups: ['coordination.k8s.io'],
    verbs: ['get', 'create', 'update'],
    more: ['patch', 'delete'],
    check: ownLease,
  },
  secrets: { verbs: reading, check: usedBy(({ secrets }, name) => secrets.has(name)) },
  configmaps: { verbs: reading, check: usedBy(({ configMaps }, name) => configMaps.has(name)) },
  serviceaccounts: { verbs: ['get'], check: usedBy(isServiceAccount) },
  'serviceaccounts/token': { verbs: ['create'], check: usedBy(isServiceAccount) },
  persistentvolumeclaims: { verbs: ['get'], check: usedBy(({ claims }, name) => claims.has(name)) },
  'persistentvolumeclaims/status': {
    verbs: ['patch'],
    more: ['get', 'update'],
    check: usedBy(({ claims }, name) => claims.has(name)),
  },
  persistentvolumes: { verbs: ['get'], check: ownVolume },
  volumeattachments: { groups: storage, verbs: ['get'], check: ownAttachment },
  csinodes: {
    groups: storage,
    verbs: ['get', 'create', 'update', 'delete'],
    more: ['patch'],
    check: ownCsiNode,
  },
  csidrivers: { groups: storage, verbs: reading },
  runtimeclasses: { groups: ['node.k8s.io'], verbs: reading },
  services: { verbs: reading },
  certificatesigningrequests: { groups: ['certificates.k8s.io'], verbs: [...reading, 'create'] },
  tokenreviews: { groups: ['authentication.k8s.io'], verbs: ['create'] },
  subjectaccessreviews: { groups: ['authorization.k8s.io'], verbs: ['create'] },
  localsubjectaccessreviews: { groups: ['authorization.k8s.io'], verbs: [], more: ['create'] },
};

/** Throws when the user may not do that at all. Users that are neither nodes nor on their way to become one may all. */
export function authorize(request: ApiRequest, store: Objects): void {
  const node = nodeOf(request.user);
  if (node !== undefined) authorizeNode(node, request, store);
  else if (request.user.groups.includes('system:bootstrappers')) authorizeBootstrap(request);
}

/** What our own kubelet never does is a mistake of it, even where a node may. */
function authorizeNode(node: string, request: ApiRequest, store: Objects): void {
  const target = targetOf(request);
  if (rules[target]?.verbs.includes(request.verb) !== true)
    throw forbiddenTo(request, `cannot ${request.verb} resource "${target}"`);
  const verdict = judgeNode(node, request, store);
  if (verdict.may === 'no')
    throw forbiddenTo(request, `cannot ${request.verb} resource "${target}": ${verdict.why}`);
}

export type NodeVerdict =
  | { readonly may: 'yes' }
  /** `why` is empty where there is nothing to say but that nodes do no such thing. */
  | { readonly may: 'no'; readonly why: string };

/** Whether a node may do that, as far as can be told before what it writes is looked at. */
export function judgeNode(node: string, wish: NodeWish, objects: Objects): NodeVerdict {
  const { verb, resource } = wish;
  const rule = Object.hasOwn(rules, targetOf(wish)) ? rules[targetOf(wish)] : undefined;
  const { groups = [''], verbs = [], more = [] } = rule ?? {};
  const isKnown = rule !== undefined && groups.includes(resource.group);
  if (!isKnown || !(verbs.includes(verb) || more.includes(verb))) return { may: 'no', why: '' };
  const why = rule.check?.(node, wish, objects);
  return why === undefined ? { may: 'yes' } : { may: 'no', why };
}

function authorizeBootstrap(request: ApiRequest): void {
  const isSigning =
    request.resource.plural === 'certificatesigningrequests' && request.subresource === undefined;
  const isAllowed = isSigning && ['create', 'get', 'list', 'watch'].includes(request.verb);
  if (!isAllowed) throw forbiddenTo(request, `cannot ${request.verb} resource "${targetOf(request)}"`);
}

const unrelated = (node: string) => `no relationship found between node '${node}' and this object`;

/** A list or watch of one object counts as reading that object. */
function nameIn({ verb, name, fieldSelector }: NodeWish): string | undefined {
  const isMany = verb === 'list' || verb === 'watch';
  return isMany ? (name ?? selectedField(fieldSelector, 'metadata.name')) : name;
}

function ownNode(node: string, wish: NodeWish): string | undefined {
  // The name of what is to be created is in the object, which is looked at when it is admitted.
  const name = nameIn(wish);
  if (wish.verb === 'create' || name === node) return undefined;
  if (name === undefined) return `node '${node}' cannot read all nodes, only its own Node object`;
  return reading.includes(wish.verb)
    ? `node '${node}' cannot read '${name}', only its own Node object`
    : `node "${node}" is not allowed to modify node "${name}"`;
}

function ownCsiNode(node: string, { verb, name }: NodeWish): string | undefined {
  return verb === 'create' || name === node
    ? undefined
    : 'can only access CSINode with the same name as the requesting node';
}

function ownPods(node: string, wish: NodeWish, objects: Objects): string | undefined {
  const { verb, namespace, name = '', subresource, fieldSelector } = wish;
  // What is made or removed is looked at when it is admitted.
  if (subresource === undefined && (verb === 'create' || verb === 'delete')) return undefined;
  if (verb === 'list' || verb === 'watch')
    return selectedField(fieldSelector, 'spec.nodeName') === node
      ? undefined
      : 'can only list/watch pods with spec.nodeName field selector';
  const pod = objects.get(apiResources.pods, namespace, name);
  return pod === undefined || pod.spec?.['nodeName'] === node ? undefined : unrelated(node);
}

function ownLease(node: string, { verb, namespace, name }: NodeWish): string | undefined {
  if (namespace !== 'kube-node-lease')
    return 'can only access leases in the "kube-node-lease" system namespace';
  return verb === 'create' || name === node
    ? undefined
    : 'can only access node lease with the same name as the requesting node';
}

function usedBy(uses: (references: PodReferences, name: string) => boolean): Check {
  return (node, wish, objects) => {
    const name = nameIn(wish);
    if (name === undefined || wish.namespace === undefined)
      return 'can only read namespaced object of this type by its name';
    const pods = podsOn(node, objects).filter(({ metadata }) => metadata.namespace === wish.namespace);
    const isUsed =
      pods.some((pod) => uses(referencesOf(pod), name)) ||
      isFromManifest(wish.resource, wish.namespace, name, objects);
    return isUsed ? undefined : unrelated(node);
  };
}

function isServiceAccount({ serviceAccount }: PodReferences, name: string): boolean {
  return (serviceAccount ?? 'default') === name;
}

function ownVolume(node: string, { name }: NodeWish, objects: Objects): string | undefined {
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

function ownAttachment(node: string, { name = '' }: NodeWish, objects: Objects): string | undefined {
  const found = objects.get(apiResources.volumeAttachments, undefined, name);
  return found === undefined || found.spec?.['nodeName'] === node ? undefined : unrelated(node);
}

function podsOn(node: string, objects: Objects): readonly StoredObject[] {
  return objects.all(apiResources.pods).filter(({ spec }) => spec?.['nodeName'] === node);
}
