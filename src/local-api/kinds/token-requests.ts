import { type ApiResource, isJsonObject, type JsonObject } from '../../api/index.ts';
import type {
  CSIDriver,
  PersistentVolume,
  PersistentVolumeClaimSpec,
  TokenRequestSpec,
} from '../../kinds/index.ts';
import { apiTime, type Random, randomHex } from '../../lib/index.ts';
import type { BoundObject, TokenClaims, TokenIssuer } from '../api/auth-types.ts';
import {
  type ApiCall,
  badRequest,
  conflict,
  type FieldCause,
  forbidden,
  invalidFields,
  nodeNameOfUser,
  notFound,
  type ObjectReader,
  type RequestAction,
  referencesOf,
  type ServerContext,
  type StoredObject,
} from '../api/index.ts';
import { invalid } from '../validation/causes.ts';
import {
  csiDrivers,
  nodes,
  persistentVolumeClaims,
  persistentVolumes,
  pods,
  secrets,
  serviceAccounts,
} from './resources.ts';

const minSeconds = 600;
const maxSeconds = 2 ** 32;
const defaultSeconds = 3_600;

interface ParsedTokenRequest {
  readonly call: ApiCall;
  readonly account: StoredObject;
  readonly audiences: readonly string[];
  readonly seconds: number;
  readonly spec: TokenRequestSpec;
}

/** The objects to which a token is bound: it becomes invalid when they are deleted. */
type TokenBindings = Pick<TokenClaims['kubernetes.io'], 'pod' | 'secret' | 'node'>;

/** The action of the subresource serviceaccounts/token: issues service account tokens. */
export function issueToken(issuer: TokenIssuer): RequestAction {
  return (call, context) => {
    const request = parseTokenRequest(call, context.objects, issuer);
    const bindings = bindingsOf(request, context.objects);
    return createResponse(request, bindings, context, issuer);
  };
}

function parseTokenRequest(call: ApiCall, objects: ObjectReader, issuer: TokenIssuer): ParsedTokenRequest {
  const { name = '', namespace } = call;
  const body = isJsonObject(call.body) ? call.body : {};
  const meta = (body['metadata'] ?? {}) as JsonObject;
  const spec = (body['spec'] ?? {}) as unknown as TokenRequestSpec;
  checkMetadata(name, namespace, meta);
  const account = objects.get(serviceAccounts, namespace, name);
  if (account === undefined) throw notFound({ resource: serviceAccounts, name });
  const { uid } = account.metadata;
  if ((meta['uid'] ?? uid) !== uid)
    throw conflict(
      { resource: tokenRequests, name },
      `the UID in the token request (${meta['uid']}) does not match the UID of the service account (${uid})`,
    );
  const seconds = spec.expirationSeconds ?? defaultSeconds;
  const causes = secondsCauses(seconds);
  if (causes.length > 0)
    throw invalidFields({ kind: 'TokenRequest', group: tokenRequests.group, name: '' }, causes);
  const audiences = (spec.audiences ?? []).length > 0 ? spec.audiences : [issuer.issuer];
  return { call, account, audiences, seconds, spec };
}

/** The resource as kube-apiserver names it in errors. */
const tokenRequests: ApiResource = {
  group: 'authentication.k8s.io',
  version: 'v1',
  plural: 'TokenRequest',
  kind: 'TokenRequest',
  scope: 'namespace',
};

function checkMetadata(name: string, namespace: string | undefined, meta: JsonObject): void {
  const causes = (
    [
      ['name', meta['name'], name],
      ['namespace', meta['namespace'], namespace],
    ] as const
  ).flatMap(([field, value, expected]) =>
    value === undefined || value === '' || value === expected
      ? []
      : [invalid(`metadata.${field}`, value, `must match the service account ${field} if specified`)],
  );
  if (causes.length > 0)
    throw invalidFields({ kind: 'TokenRequest', group: tokenRequests.group, name }, causes);
}

function secondsCauses(seconds: number): readonly FieldCause[] {
  const field = 'spec.expirationSeconds';
  if (seconds < minSeconds)
    return [invalid(field, seconds, 'may not specify a duration less than 10 minutes')];
  return seconds > maxSeconds
    ? [invalid(field, seconds, 'may not specify a duration larger than 2^32 seconds')]
    : [];
}

function bindingsOf(request: ParsedTokenRequest, objects: ObjectReader): TokenBindings {
  const { boundObjectRef: ref } = request.spec;
  const isPod = ref !== undefined && ref.kind === 'Pod' && ref.apiVersion === 'v1';
  const nodeName = nodeNameOfUser(request.call.user);
  if (nodeName !== undefined && !isPod) throw forbiddenForNode(request, 'requested token not bound to a pod');
  if (ref === undefined) return {};
  const { kind = '', apiVersion = '' } = ref;
  if (!['v1', ''].includes(apiVersion) || !['Pod', 'Node', 'Secret'].includes(kind))
    throw badRequest(
      `cannot bind token to object of type ${apiVersion.includes('/') ? '' : '/'}${apiVersion}, Kind=${kind}`,
    );
  if (kind === 'Pod') return podBindings(request, nodeName, objects);
  return kind === 'Node'
    ? { node: boundObject(boundTarget(request, nodes, undefined, objects)) }
    : { secret: boundObject(boundTarget(request, secrets, request.call.namespace, objects)) };
}

function boundObject({ metadata: { name, uid } }: StoredObject): BoundObject {
  return { name, uid };
}

function boundTarget(
  request: ParsedTokenRequest,
  resource: ApiResource,
  namespace: string | undefined,
  objects: ObjectReader,
): StoredObject {
  const { name = '', uid } = request.spec.boundObjectRef ?? {};
  const object = objects.get(resource, namespace, name);
  if (object === undefined) throw notFound({ resource, name });
  if (uid !== undefined && uid !== '' && uid !== object.metadata.uid)
    throw conflict(
      { resource: { ...resource, plural: resource.kind }, name },
      `the UID in the bound object reference (${uid}) does not match the UID in record. The object might have been deleted and then recreated`,
    );
  return object;
}

function podBindings(
  request: ParsedTokenRequest,
  requestingNode: string | undefined,
  objects: ObjectReader,
): TokenBindings {
  if (requestingNode !== undefined && (request.spec.boundObjectRef?.uid ?? '') === '')
    throw forbiddenForNode(request, 'requested token with a pod binding without a uid');
  const pod = boundTarget(request, pods, request.call.namespace, objects);
  // The requesting node is checked first, so that it gets no information about pods of other nodes.
  if (requestingNode !== undefined) checkNode(request, requestingNode, pod, objects);
  const { name } = request.account.metadata;
  if ((pod.spec?.['serviceAccountName'] ?? 'default') !== name)
    throw badRequest(
      `cannot bind token for serviceaccount "${name}" to pod running with different serviceaccount name.`,
    );
  const nodeName = pod.spec?.['nodeName'] as string | undefined;
  if (nodeName === undefined || nodeName === '') return { pod: boundObject(pod) };
  const node = objects.get(nodes, undefined, nodeName);
  return { pod: boundObject(pod), node: { name: nodeName, uid: node?.metadata.uid ?? '' } };
}

/** A node may only request tokens for pods that run on it, with audiences of their volumes. */
function checkNode(
  request: ParsedTokenRequest,
  node: string,
  pod: StoredObject,
  objects: ObjectReader,
): void {
  if (pod.spec?.['nodeName'] !== node)
    throw forbiddenForNode(request, 'requested token bound to a pod scheduled on a different node');
  const [audience = '', ...more] = request.spec.audiences ?? [];
  if (more.length > 0) throw forbiddenForNode(request, 'node may only request 0 or 1 audiences');
  const { audiences, drivers, claims } = referencesOf(pod);
  const ofClaims = [...claims].flatMap((claim) => claimDriver(objects, request.call.namespace, claim));
  const ofDrivers = [...drivers, ...ofClaims].flatMap((driver) => driverAudiences(objects, driver));
  if (!audiences.has(audience) && !ofDrivers.includes(audience))
    throw forbiddenForNode(request, `audience "${audience}" not found in pod spec volume`);
}

/** The CSI driver of the volume that is bound to the claim. */
function claimDriver(objects: ObjectReader, namespace: string | undefined, name: string): readonly string[] {
  const claim = objects.get(persistentVolumeClaims, namespace, name);
  const { volumeName = '' } = (claim?.spec ?? {}) as PersistentVolumeClaimSpec;
  const volume = objects.get(persistentVolumes, undefined, volumeName) as unknown as
    | PersistentVolume
    | undefined;
  const driver = volume?.spec?.csi?.driver;
  return driver === undefined ? [] : [driver];
}

function driverAudiences(objects: ObjectReader, driver: string): readonly string[] {
  const found = objects.get(csiDrivers, undefined, driver) as unknown as CSIDriver | undefined;
  return (found?.spec.tokenRequests ?? []).map(({ audience }) => audience);
}

function forbiddenForNode({ call: { name, user } }: ParsedTokenRequest, why: string): Error {
  const resource = { ...serviceAccounts, plural: 'serviceaccounts' };
  return forbidden({ resource, name }, `User "${user.name}" ${why}`);
}

function createResponse(
  request: ParsedTokenRequest,
  bindings: TokenBindings,
  context: ServerContext,
  issuer: TokenIssuer,
): JsonObject {
  const { account, audiences, seconds, spec } = request;
  const now = context.clock.now();
  const { name, namespace = '', uid } = account.metadata;
  const iat = Math.floor(now / 1_000);
  const token = issuer.issue({
    iss: issuer.issuer,
    sub: `system:serviceaccount:${namespace}:${name}`,
    aud: audiences,
    exp: iat + seconds,
    iat,
    nbf: iat,
    jti: tokenId(context.random),
    'kubernetes.io': { namespace, serviceaccount: { name, uid }, ...bindings },
  });
  return {
    kind: 'TokenRequest',
    apiVersion: 'authentication.k8s.io/v1',
    metadata: { name, namespace, uid, creationTimestamp: apiTime(now) },
    spec: { ...spec, audiences, expirationSeconds: seconds, boundObjectRef: spec.boundObjectRef ?? null },
    status: { token, expirationTimestamp: apiTime(now + seconds * 1_000) },
  };
}

function tokenId(random: Random): string {
  const hex = randomHex(random, 30);
  const parts = [hex.slice(0, 8), hex.slice(8, 12), `4${hex.slice(12, 15)}`, `a${hex.slice(15, 18)}`];
  return [...parts, hex.slice(18)].join('-');
}
