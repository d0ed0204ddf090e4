import type { CertificateSigningRequestCondition as Condition, Node } from '../../kinds/index.ts';
import { describeError, type Instant, instant, type Logger } from '../../lib/index.ts';
import { canonicalIp } from '../../protocols/x509/index.ts';
import type { CertificateRequestInfo, CertificateSigner } from '../api/auth-types.ts';
import type { Controller, ServerContext, StoredObject } from '../api/index.ts';
import { nodeNameOfUser, type ObjectReader } from '../api/index.ts';
import { nodes, certificateSigningRequests as requests } from '../kinds/resources.ts';
import { asRequest, conditionsOf, requestText } from '../kinds/signing-requests.ts';
import type { ControllerClient } from './keyed-controller.ts';
import { keyedController } from './keyed-controller.ts';

export interface CertificateControllerDeps {
  readonly context: ServerContext;
  readonly client: ControllerClient;
  readonly log: Logger;
  readonly signer: CertificateSigner;
  readonly localNode: string;
  /** The maximum lifetime of a certificate; a year by default. */
  readonly maxCertificateLifetimeMs?: number | undefined;
}

const hourMs = 3_600_000;
const decidedTtlMs = hourMs;
const pendingTtlMs = 24 * hourMs;
const shortestSeconds = 600;
const yearMs = 365 * 24 * hourMs;
/**
 * The start of a certificate's validity is set back by this time, for clients whose clock is slow.
 */
const backdatedMs = 300_000;

/**
 * Approves and signs certificate signing requests, and deletes them:
 *
 *     pending ──> Approved (automatically or by a user) ──> signed or Failed ──> after an hour deleted
 *        ├──────> Denied ──────────────────────────────────────────────────────> after an hour deleted
 *        └──────> no decision ─────────────────────────────────────────────────> after a day deleted
 */
export function certificateController(deps: CertificateControllerDeps): Controller {
  const { context, log } = deps;
  const all = () => context.objects.all(requests).map(({ metadata }) => metadata.name);
  return keyedController({
    name: 'certificates',
    context: context,
    log,
    initialKeys: all,
    keysFor: ({ type, resource, object }) => {
      if (resource.plural === requests.plural) return type === 'DELETED' ? [] : [object.metadata.name];
      // A change of the node's addresses enqueues all certificate signing requests, because the
      // addresses decide whether a serving certificate is approved.
      return resource.plural === nodes.plural &&
        object.metadata.name === deps.localNode &&
        isMoved(object, type)
        ? all()
        : [];
    },
    reconcile: (name) => reconcileRequest(deps, name),
  });

  function isMoved({ metadata }: StoredObject, type: string): boolean {
    return type !== 'DELETED' && metadata.deletionTimestamp === undefined && pending(context).length > 0;
  }
}

function pending({ objects }: ServerContext): readonly StoredObject[] {
  return objects.all(requests).filter((request) => conditionsOf(request).length === 0);
}

async function reconcileRequest(deps: CertificateControllerDeps, name: string): Promise<number | undefined> {
  const found = deps.context.objects.get(requests, undefined, name);
  if (found === undefined) return undefined;
  const now = deps.context.clock.now();
  const leftMs = deleteAfter(found) - now;
  if (leftMs <= 0) {
    deps.client.delete(requests, found);
    return undefined;
  }
  const approved = approve(deps, found);
  await sign(deps, approved, now);
  const newest = deps.context.objects.get(requests, undefined, name);
  return newest === undefined ? undefined : Math.max(1_000, deleteAfter(newest) - now);
}

/** The time at which the certificate signing request is deleted. */
function deleteAfter(request: StoredObject): number {
  const decided = conditionsOf(request).filter(({ type }) => ['Approved', 'Denied', 'Failed'].includes(type));
  const times = decided.map(({ lastUpdateTime = '' }) => Date.parse(lastUpdateTime)).filter(Number.isFinite);
  return times.length > 0
    ? Math.max(...times) + decidedTtlMs
    : Date.parse(request.metadata.creationTimestamp) + pendingTtlMs;
}

function approve(
  { context, client, signer, localNode }: CertificateControllerDeps,
  request: StoredObject,
): StoredObject {
  if (conditionsOf(request).some(({ type }) => type === 'Approved' || type === 'Denied')) return request;
  const facts = signer.read(requestText(request));
  const approval = facts && approvalOf(request, facts, context.objects, localNode);
  if (approval?.by !== 'rule') return request;
  const condition = { type: 'Approved', status: 'True', reason: 'AutoApproved', message: approval.message };
  return client.update(requests, withCondition(request, condition), 'approval');
}

function withCondition(request: StoredObject, condition: Condition): StoredObject {
  return { ...request, status: { ...request.status, conditions: [...conditionsOf(request), condition] } };
}

async function sign(deps: CertificateControllerDeps, request: StoredObject, now: Instant): Promise<void> {
  const has = (conditionType: string) => conditionsOf(request).some(({ type }) => type === conditionType);
  const { signerName = '' } = asRequest(request).spec ?? {};
  const isOurs = (Object.values(nodeSigners) as readonly string[]).includes(signerName);
  const isSigned = (asRequest(request).status?.certificate ?? '') !== '';
  if (!isOurs || isSigned || !has('Approved') || has('Failed') || has('Denied')) return;
  const outcome = await issueCertificate(deps, request, now);
  if ('failure' in outcome) {
    const { failure: message, reason } = outcome;
    deps.client.update(
      requests,
      withCondition(request, { type: 'Failed', status: 'True', reason, message }),
      'status',
    );
    return;
  }
  const certificate = Buffer.from(outcome.certificate).toString('base64');
  deps.client.update(requests, { ...request, status: { ...request.status, certificate } }, 'status');
}

type IssueResult = { readonly certificate: string } | { readonly failure: string; readonly reason: string };

async function issueCertificate(
  { signer, maxCertificateLifetimeMs = yearMs }: CertificateControllerDeps,
  request: StoredObject,
  now: Instant,
): Promise<IssueResult> {
  const reason = 'SignerValidationFailure';
  const facts = signer.read(requestText(request));
  if (facts === undefined) return { failure: 'the request cannot be read', reason };
  const complaint = signerProblem(request, facts);
  if (complaint !== undefined) return { failure: complaint, reason };
  const { usages = [], expirationSeconds } = asRequest(request).spec ?? {};
  const createdMs =
    expirationSeconds === undefined
      ? maxCertificateLifetimeMs
      : Math.max(expirationSeconds, shortestSeconds) * 1_000;
  try {
    const certificate = await signer.sign({
      request: requestText(request),
      usages,
      notBefore: instant(now - backdatedMs),
      notAfter: instant(now + Math.min(createdMs, maxCertificateLifetimeMs)),
    });
    return { certificate };
  } catch (error) {
    return { failure: describeError(error), reason };
  }
}

export const nodeSigners = {
  client: 'kubernetes.io/kube-apiserver-client',
  kubelet: 'kubernetes.io/kube-apiserver-client-kubelet',
  serving: 'kubernetes.io/kubelet-serving',
} as const;

const kubeletUsages = {
  client: ['client auth', 'digital signature', 'key encipherment'],
  serving: ['digital signature', 'key encipherment', 'server auth'],
} as const;

/**
 * Why the signer rejects the certificate signing request; undefined if it accepts it or if the
 * signer name belongs to another signer.
 */
function signerProblem(object: StoredObject, facts: CertificateRequestInfo): string | undefined {
  const { signerName = '', usages = [] } = asRequest(object).spec ?? {};
  if (signerName === nodeSigners.client) return clientProblem(usages);
  if (signerName === nodeSigners.kubelet) return kubeletProblem(facts, usages, 'client');
  return signerName === nodeSigners.serving ? kubeletProblem(facts, usages, 'serving') : undefined;
}

function clientProblem(usages: readonly string[]): string | undefined {
  const strange = usages.find((usage) => !(kubeletUsages.client as readonly string[]).includes(usage));
  if (strange !== undefined) return `invalid usage for client certificate: ${strange}`;
  return usages.includes('client auth')
    ? undefined
    : 'missing required usage for client certificate: client auth';
}

function kubeletProblem(
  facts: CertificateRequestInfo,
  usages: readonly string[],
  kind: 'client' | 'serving',
): string | undefined {
  const { organizations, commonName } = facts;
  if (organizations.length !== 1 || organizations[0] !== 'system:nodes')
    return 'subject organization is not system:nodes';
  const names = kind === 'client' ? extraNames(facts) : servingNames(facts);
  if (names !== undefined) return names;
  if (!hasUsages(usages, kubeletUsages[kind]))
    return `usages did not match [${kubeletUsages[kind].join(' ')}]`;
  return commonName.startsWith('system:node:')
    ? undefined
    : 'subject common name does not begin with system:node:';
}

function extraNames({
  dnsNames,
  emailAddresses,
  ipAddresses,
  uris,
}: CertificateRequestInfo): string | undefined {
  const found = (
    [
      ['DNS', dnsNames],
      ['Email', emailAddresses],
      ['IP', ipAddresses],
      ['URI', uris],
    ] as const
  ).find(([, names]) => names.length > 0);
  return found && `${found[0]} subjectAltNames are not allowed`;
}

function servingNames({
  dnsNames,
  ipAddresses,
  emailAddresses,
  uris,
}: CertificateRequestInfo): string | undefined {
  if (dnsNames.length === 0 && ipAddresses.length === 0) return 'DNS or IP subjectAltName is required';
  return extraNames({ ...emptyFacts, emailAddresses, uris });
}

const emptyFacts: CertificateRequestInfo = {
  commonName: '',
  organizations: [],
  dnsNames: [],
  ipAddresses: [],
  emailAddresses: [],
  uris: [],
};

/**
 * The certificate must have all these usages, except key encipherment, which some key types do not
 * support.
 */
function hasUsages(usages: readonly string[], expected: readonly string[]): boolean {
  const needed = expected.filter((usage) => usage !== 'key encipherment');
  return needed.every((usage) => usages.includes(usage)) && usages.every((usage) => expected.includes(usage));
}

export type Approval = { readonly by: 'rule'; readonly message: string } | { readonly by: 'nobody' };

const notApproved: Approval = { by: 'nobody' };

/** Approves automatically the client and serving certificates that a node requests for itself. */
function approvalOf(
  object: StoredObject,
  facts: CertificateRequestInfo,
  objects: ObjectReader,
  localNode: string,
): Approval {
  if (signerProblem(object, facts) !== undefined) return notApproved;
  const { signerName, username = '', groups = [] } = asRequest(object).spec ?? {};
  const node = nodeNameOfUser({ name: username, groups });
  if (node === undefined || username !== facts.commonName) return notApproved;
  if (signerName === nodeSigners.kubelet)
    return { by: 'rule', message: 'The node requests a client certificate for itself.' };
  const isOwn =
    signerName === nodeSigners.serving && node === localNode && hasAddresses(objects, node, facts);
  return isOwn
    ? { by: 'rule', message: 'The node requests a serving certificate for its own addresses.' }
    : notApproved;
}

function hasAddresses(objects: ObjectReader, name: string, facts: CertificateRequestInfo): boolean {
  const node = objects.get(nodes, undefined, name) as unknown as Node | undefined;
  const own = (node?.status?.addresses ?? []).map(({ address }) => canonicalIp(address) ?? address);
  return [...facts.dnsNames, ...facts.ipAddresses].every((one) => own.includes(canonicalIp(one) ?? one));
}
