import type { Event } from '../../kinds/index.ts';
import type { Logger } from '../../lib/index.ts';
import type { Controller, ServerContext, StoredObject } from '../api/index.ts';
import { events, pods } from '../kinds/resources.ts';
import type { ControllerClient } from './keyed-controller.ts';

export interface EventExpiryDeps {
  readonly context: ServerContext;
  readonly client: ControllerClient;
  readonly log: Logger;
  /** How long an event is retained after it last occurred. */
  readonly ttlMs: number;
  /** The maximum number of events. */
  readonly maxEvents: number;
}

const intervalMs = 30_000;
/** The maximum number of deletions before the controller yields to the event loop. */
const batch = 500;

type LastSeen = (event: StoredObject) => number;

/** A controller that deletes expired events, and the oldest events above the maximum number. */
export function eventExpiryController(deps: EventExpiryDeps): Controller {
  return {
    name: 'event-expiry',
    async run(signal) {
      const { clock } = deps.context;
      const lastSeen = memoizedLastSeen();
      while (!signal.aborted) {
        await deps.context.whenAcceptingWrites(signal).catch(() => {});
        if (signal.aborted) return;
        const isAll = deleteExpiredBatch(deps, lastSeen);
        await clock.sleep(isAll ? intervalMs : 100, signal).catch(() => {});
      }
    },
  };
}

/** Deletes a batch of events; returns whether no further events are to be deleted. */
function deleteExpiredBatch(deps: EventExpiryDeps, lastSeen: LastSeen): boolean {
  try {
    const going = eventsToDelete(deps, lastSeen);
    for (const event of going.slice(0, batch)) deps.client.delete(events, event);
    return going.length <= batch;
  } catch (error) {
    deps.log.error('Failed to delete expired events', error);
    return true;
  }
}

/**
 * The events to delete: expired events, and the oldest events above the maximum number; events of
 * existing pods are deleted last.
 */
function eventsToDelete(
  { context, ttlMs, maxEvents }: EventExpiryDeps,
  lastSeen: LastSeen,
): readonly StoredObject[] {
  const oldest = context.clock.now() - ttlMs;
  const dated = context.objects.all(events).map((event) => ({ event, at: lastSeen(event) }));
  const expired = dated.filter(({ at }) => at < oldest);
  const tooMany = dated.length - expired.length - maxEvents;
  if (tooMany <= 0) return expired.map(({ event }) => event);
  const rest = dated
    .filter(({ at }) => at >= oldest)
    .map((one) => ({ ...one, isLive: isOfLivePod(context, one.event) }))
    .toSorted((a, b) => Number(a.isLive) - Number(b.isLive) || a.at - b.at);
  return [...expired, ...rest.slice(0, tooMany)].map(({ event }) => event);
}

/** Stored objects are immutable, so the last occurrence of each event is computed once. */
function memoizedLastSeen(): LastSeen {
  const known = new WeakMap<StoredObject, number>();
  return (event) => {
    const at = known.get(event) ?? lastSeen(event);
    known.set(event, at);
    return at;
  };
}

function lastSeen(object: StoredObject): number {
  const { lastTimestamp, eventTime, series } = object as unknown as Event;
  const times = [object.metadata.creationTimestamp, lastTimestamp, eventTime, series?.lastObservedTime];
  return Math.max(...times.map((time) => Date.parse(time ?? '')).filter(Number.isFinite));
}

function isOfLivePod(context: ServerContext, object: StoredObject): boolean {
  const { kind, namespace, name = '', uid } = (object as unknown as Event).involvedObject ?? {};
  if (kind !== 'Pod') return false;
  const pod = context.objects.get(pods, namespace, name);
  return pod !== undefined && (uid === undefined || uid === pod.metadata.uid);
}
