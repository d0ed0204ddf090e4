import type { CertificateSigningRequestCondition as Condition } from '../../../kinds/index.ts';
import { describeError, type Instant, instant, type Logger } from '../../../lib/index.ts';
import type { ApiLoop, StoredObject, World } from '../../core/index.ts';
import type { SigningDesk } from '../desks.ts';
import { nodes, certificateSigningRequests as requests } from '../resources.ts';
import { asRequest, conditionsOf, requestText } from '../signing-requests.ts';
import { approvalOf, signerComplaint, signers } from './certificate-approval.ts';
import { keyedLoop } from './keyed-loop.ts';
import type { ServerHand } from './server-hand.ts';

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
