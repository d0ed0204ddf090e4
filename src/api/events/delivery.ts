import type { Event } from '../../kinds/index.ts';
import { type Clock, describeError, KubelingError, withDeadline } from '../../lib/index.ts';
import { isApiCode } from '../client/api-error.ts';
import type { ApiClient } from '../client/client.ts';
import { apiResources } from '../client/resource.ts';

/** An event that waits to be sent. */
export interface QueuedEvent {
  readonly key: string;
  event: Event;
  /** Whether to create the event, or to patch an event that exists on the server. */
  via: 'create' | 'patch';
  /**
   * The number of failed attempts. An attempt counts only if the server has responded to other
   * events since the attempt before it.
   */
  tries: number;
  /** How many responses the server had sent in total at the time of the previous attempt. */
  responsesBefore: number;
  /** Whether an attempt to create the event got no response, so that the event may exist. */
  mayExist: boolean;
}

export type Delivery =
  | { readonly is: 'sent' }
  /**
   * The server will never accept the event. The rejection is logged as a warning, or at level debug
   * if it is expected.
   */
  | { readonly is: 'refused'; readonly why: string; readonly log: 'warn' | 'debug' }
  /**
   * The call got no response, or a response that did not come from the API server: the event is
   * retried.
   */
  | { readonly is: 'failed'; readonly server: 'away' | 'silent' | 'there'; readonly why: string };

export interface DeliveryDeps {
  readonly client: Pick<ApiClient, 'create' | 'patch'>;
  readonly clock: Clock;
}

/** The deadline of a call, in case the client's own deadlines do not apply. */
const callDeadlineMs = 30_000;

/**
 * Makes one attempt to send the event, and updates the queued event for the next attempt. Rejects
 * only with the signal's reason.
 */
export async function deliver(
  deps: DeliveryDeps,
  queued: QueuedEvent,
  signal: AbortSignal,
): Promise<Delivery> {
  try {
    return queued.via === 'patch' ? await patched(deps, queued, signal) : await created(deps, queued, signal);
  } catch (error) {
    signal.throwIfAborted();
    const delivery = classifyFailure(error);
    if (delivery.is === 'failed' && queued.via === 'create') queued.mayExist = true;
    return delivery;
  }
}

async function patched(deps: DeliveryDeps, queued: QueuedEvent, signal: AbortSignal): Promise<Delivery> {
  try {
    await patch(deps, queued, signal);
    return { is: 'sent' };
  } catch (error) {
    // The event no longer exists, because servers delete events after some time: it is created
    // again below.
    if (!isApiCode(error, 'API_NOT_FOUND')) throw error;
  }
  queued.via = 'create';
  queued.mayExist = false;
  return await created(deps, queued, signal);
}

async function created(deps: DeliveryDeps, queued: QueuedEvent, signal: AbortSignal): Promise<Delivery> {
  try {
    await create(deps, queued, signal);
  } catch (error) {
    if (!isApiCode(error, 'API_CONFLICT') || !queued.mayExist) throw error;
    // The event exists: an earlier attempt created it, but its response was lost.
    queued.via = 'patch';
    if ((queued.event.count ?? 1) > 1) await patch(deps, queued, signal);
  }
  return { is: 'sent' };
}

function create(
  { client, clock }: DeliveryDeps,
  { event }: QueuedEvent,
  signal: AbortSignal,
): Promise<unknown> {
  const at = { resource: apiResources.events, namespace: event.metadata.namespace };
  const options = { clock, ms: callDeadlineMs, what: 'create an event' };
  return withDeadline(options, (limited) => client.create(at, event, limited), signal);
}

function patch(
  { client, clock }: DeliveryDeps,
  { event }: QueuedEvent,
  signal: AbortSignal,
): Promise<unknown> {
  const { name = '', namespace } = event.metadata;
  const { count, lastTimestamp, message } = event;
  const options = { clock, ms: callDeadlineMs, what: 'patch an event' };
  const body = { count, lastTimestamp, message };
  const ref = { resource: apiResources.events, namespace, name };
  return withDeadline(options, (limited) => client.patch(ref, { kind: 'strategic', body }, limited), signal);
}

/** HTTP statuses of a server or proxy that is reachable but temporarily unable to respond. */
const temporaryStatuses: ReadonlySet<unknown> = new Set([429, 502, 503, 504]);

function classifyFailure(error: unknown): Delivery {
  const why = describeError(error);
  if (isApiCode(error, 'API_UNAVAILABLE')) return { is: 'failed', server: 'away', why };
  if (isApiCode(error, 'API_DEADLINE', 'DEADLINE_EXCEEDED')) return { is: 'failed', server: 'silent', why };
  const status = error instanceof KubelingError ? error.details['status'] : undefined;
  if (isApiCode(error, 'API_BAD_ANSWER', 'API_TOO_MANY') || temporaryStatuses.has(status))
    return { is: 'failed', server: 'there', why };
  return { is: 'refused', why, log: isExpectedRefusal(error) ? 'debug' : 'warn' };
}

/**
 * Whether a rejection is expected: the namespace is terminating, or the server has the event
 * already.
 */
function isExpectedRefusal(error: unknown): boolean {
  if (isApiCode(error, 'API_CONFLICT')) return true;
  return isApiCode(error, 'API_FORBIDDEN') && /being terminated/.test(describeError(error));
}
