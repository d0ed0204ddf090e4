import type { CertificateSigningRequestCondition as Condition, Node } from '../../kinds/index.ts';
import { describeError, type Instant, instant, type Logger } from '../../lib/index.ts';
import { canonicalIp } from '../../protocols/x509/index.ts';
import type { SigningDesk, SigningFacts } from '../api/auth-types.ts';
import type { ApiLoop, StoredObject, World } from '../api/index.ts';
import { nodeOf, type ObjectReader } from '../api/index.ts';
import { nodes, certificateSigningRequests as requests } from '../kinds/resources.ts';
import { asRequest, conditionsOf, requestText } from '../kinds/signing-requests.ts';
import type { ServerHand } from './keyed-controller.ts';
import { keyedLoop } from './keyed-controller.ts';

export interface CertificatesDeps {
  readonly world: World;
  readonly hand: ServerHand;
  readonly log: Logger;
  readonly signing: SigningDesk;
  readonly localNode: string;
  /** How long certificates hold at most; a year unless given. */
  readonly signedForMs?: number | undefined;
}

const hourMs = 3_600_000;
const doneForMs = hourMs;
const pendingForMs = 24 * hourMs;
const shortestSeconds = 600;
const yearMs = 365 * 24 * hourMs;
/** For clocks that are a little behind. */
const backdatedMs = 300_000;

/**
 *     asked ──> Approved (by rule, or by who may) ──> signed, or Failed ──> gone after an hour
 *        └────> Denied ──> gone after an hour       └──> nobody decides: gone after a day
 */
export function certificatesLoop(deps: CertificatesDeps): ApiLoop {
  const { world, log } = deps;
  const all = () => world.objects.all(requests).map(({ metadata }) => metadata.name);
  return keyedLoop({
    name: 'certificates',
    world,
    log,
    first: all,
    keysOf: ({ type, resource, object }) => {
      if (resource.plural === requests.plural) return type === 'DELETED' ? [] : [object.metadata.name];
      // Addresses of the node decide which certificates it gets.
      return resource.plural === nodes.plural &&
        object.metadata.name === deps.localNode &&
        isMoved(object, type)
        ? all()
        : [];
    },
    look: (name) => settle(deps, name),
  });

  function isMoved({ metadata }: StoredObject, type: string): boolean {
    return type !== 'DELETED' && metadata.deletionTimestamp === undefined && pending(world).length > 0;
  }
}

function pending({ objects }: World): readonly StoredObject[] {
  return objects.all(requests).filter((request) => conditionsOf(request).length === 0);
}

async function settle(deps: CertificatesDeps, name: string): Promise<number | undefined> {
  const found = deps.world.objects.get(requests, undefined, name);
  if (found === undefined) return undefined;
  const now = deps.world.clock.now();
  const leftMs = endOf(found) - now;
  if (leftMs <= 0) {
    deps.hand.delete(requests, found);
    return undefined;
  }
  const approved = approve(deps, found);
  await sign(deps, approved, now);
  const newest = deps.world.objects.get(requests, undefined, name);
  return newest === undefined ? undefined : Math.max(1_000, endOf(newest) - now);
}

/** When a request has been there for long enough. */
function endOf(request: StoredObject): number {
  const decided = conditionsOf(request).filter(({ type }) => ['Approved', 'Denied', 'Failed'].includes(type));
  const times = decided.map(({ lastUpdateTime = '' }) => Date.parse(lastUpdateTime)).filter(Number.isFinite);
  return times.length > 0
    ? Math.max(...times) + doneForMs
    : Date.parse(request.metadata.creationTimestamp) + pendingForMs;
}

function approve({ world, hand, signing, localNode }: CertificatesDeps, request: StoredObject): StoredObject {
  if (conditionsOf(request).some(({ type }) => type === 'Approved' || type === 'Denied')) return request;
  const facts = signing.read(requestText(request));
  const approval = facts && approvalOf(request, facts, world.objects, localNode);
  if (approval?.by !== 'rule') return request;
  const condition = { type: 'Approved', status: 'True', reason: 'AutoApproved', message: approval.message };
  return hand.update(requests, withCondition(request, condition), 'approval');
}

function withCondition(request: StoredObject, condition: Condition): StoredObject {
  return { ...request, status: { ...request.status, conditions: [...conditionsOf(request), condition] } };
}

async function sign(deps: CertificatesDeps, request: StoredObject, now: Instant): Promise<void> {
  const has = (wanted: string) => conditionsOf(request).some(({ type }) => type === wanted);
  const { signerName = '' } = asRequest(request).spec ?? {};
  const isOurs = (Object.values(signers) as readonly string[]).includes(signerName);
  const isSigned = (asRequest(request).status?.certificate ?? '') !== '';
  if (!isOurs || isSigned || !has('Approved') || has('Failed') || has('Denied')) return;
  const outcome = await made(deps, request, now);
  if ('failure' in outcome) {
    const { failure: message, reason } = outcome;
    deps.hand.update(
      requests,
      withCondition(request, { type: 'Failed', status: 'True', reason, message }),
      'status',
    );
    return;
  }
  const certificate = Buffer.from(outcome.certificate).toString('base64');
  deps.hand.update(requests, { ...request, status: { ...request.status, certificate } }, 'status');
}

type Outcome = { readonly certificate: string } | { readonly failure: string; readonly reason: string };

async function made(
  { signing, signedForMs = yearMs }: CertificatesDeps,
  request: StoredObject,
  now: Instant,
): Promise<Outcome> {
  const reason = 'SignerValidationFailure';
  const facts = signing.read(requestText(request));
  if (facts === undefined) return { failure: 'the request cannot be read', reason };
  const complaint = signerComplaint(request, facts);
  if (complaint !== undefined) return { failure: complaint, reason };
  const { usages = [], expirationSeconds } = asRequest(request).spec ?? {};
  const askedMs =
    expirationSeconds === undefined ? signedForMs : Math.max(expirationSeconds, shortestSeconds) * 1_000;
  try {
    const certificate = await signing.sign({
      request: requestText(request),
      usages,
      notBefore: instant(now - backdatedMs),
      notAfter: instant(now + Math.min(askedMs, signedForMs)),
    });
    return { certificate };
  } catch (error) {
    return { failure: describeError(error), reason };
  }
}

export const signers = {
  client: 'kubernetes.io/kube-apiserver-client',
  kubelet: 'kubernetes.io/kube-apiserver-client-kubelet',
  serving: 'kubernetes.io/kubelet-serving',
} as const;

const kubeletUses = {
  client: ['client auth', 'digital signature', 'key encipherment'],
  serving: ['digital signature', 'key encipherment', 'server auth'],
} as const;

/** Why a signer will not sign; undefined if it will, or if it is none of ours. */
export function signerComplaint(object: StoredObject, facts: SigningFacts): string | undefined {
  const { signerName = '', usages = [] } = asRequest(object).spec ?? {};
  if (signerName === signers.client) return clientComplaint(usages);
  if (signerName === signers.kubelet) return kubeletComplaint(facts, usages, 'client');
  return signerName === signers.serving ? kubeletComplaint(facts, usages, 'serving') : undefined;
}

function clientComplaint(usages: readonly string[]): string | undefined {
  const strange = usages.find((usage) => !(kubeletUses.client as readonly string[]).includes(usage));
  if (strange !== undefined) return `invalid usage for client certificate: ${strange}`;
  return usages.includes('client auth')
    ? undefined
    : 'missing required usage for client certificate: client auth';
}

function kubeletComplaint(
  facts: SigningFacts,
  usages: readonly string[],
  kind: 'client' | 'serving',
): string | undefined {
  const { organizations, commonName } = facts;
  if (organizations.length !== 1 || organizations[0] !== 'system:nodes')
    return 'subject organization is not system:nodes';
  const names = kind === 'client' ? extraNames(facts) : servingNames(facts);
  if (names !== undefined) return names;
  if (!hasUses(usages, kubeletUses[kind])) return `usages did not match [${kubeletUses[kind].join(' ')}]`;
  return commonName.startsWith('system:node:')
    ? undefined
    : 'subject common name does not begin with system:node:';
}

function extraNames({ dnsNames, emailAddresses, ipAddresses, uris }: SigningFacts): string | undefined {
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

function servingNames({ dnsNames, ipAddresses, emailAddresses, uris }: SigningFacts): string | undefined {
  if (dnsNames.length === 0 && ipAddresses.length === 0) return 'DNS or IP subjectAltName is required';
  return extraNames({ ...emptyFacts, emailAddresses, uris });
}

const emptyFacts: SigningFacts = {
  commonName: '',
  organizations: [],
  dnsNames: [],
  ipAddresses: [],
  emailAddresses: [],
  uris: [],
};

/** All of these, where encipherment by the key may be missing, as with keys that cannot do it. */
function hasUses(usages: readonly string[], wanted: readonly string[]): boolean {
  const needed = wanted.filter((usage) => usage !== 'key encipherment');
  return needed.every((usage) => usages.includes(usage)) && usages.every((usage) => wanted.includes(usage));
}

export type Approval = { readonly by: 'rule'; readonly message: string } | { readonly by: 'nobody' };

const nobody: Approval = { by: 'nobody' };

/** What is granted without asking anybody: a node's own certificates, to the node itself. */
export function approvalOf(
  object: StoredObject,
  facts: SigningFacts,
  objects: ObjectReader,
  localNode: string,
): Approval {
  if (signerComplaint(object, facts) !== undefined) return nobody;
  const { signerName, username = '', groups = [] } = asRequest(object).spec ?? {};
  const node = nodeOf({ name: username, groups });
  if (node === undefined || username !== facts.commonName) return nobody;
  if (signerName === signers.kubelet)
    return { by: 'rule', message: 'The node asks for a certificate of its own.' };
  const isOwn = signerName === signers.serving && node === localNode && hasAddresses(objects, node, facts);
  return isOwn ? { by: 'rule', message: 'The node asks for a certificate for its own addresses.' } : nobody;
}

function hasAddresses(objects: ObjectReader, name: string, facts: SigningFacts): boolean {
  const node = objects.get(nodes, undefined, name) as unknown as Node | undefined;
  const own = (node?.status?.addresses ?? []).map(({ address }) => canonicalIp(address) ?? address);
  return [...facts.dnsNames, ...facts.ipAddresses].every((one) => own.includes(canonicalIp(one) ?? one));
}
