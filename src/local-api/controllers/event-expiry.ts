import type { Event } from '../../kinds/index.ts';
import type { Logger } from '../../lib/index.ts';
import type { ApiLoop, StoredObject, World } from '../api/index.ts';
import { events, pods } from '../kinds/resources.ts';
import type { ServerHand } from './keyed-controller.ts';

export interface EventExpiryDeps {
  readonly world: World;
  readonly hand: ServerHand;
  readonly log: Logger;
  /** How long an event is kept after it last happened. */
  readonly keptForMs: number;
  /** So many are kept at most. */
  readonly most: number;
}

const roundMs = 30_000;
/** So many go before others get their turn. */
const batch = 500;

type LastSeen = (event: StoredObject) => number;

/** Takes away events nobody looks for any more. */
export function eventExpiryLoop(deps: EventExpiryDeps): ApiLoop {
  return {
    name: 'event-expiry',
    async run(signal) {
      const { clock } = deps.world;
      const seen = remembered();
      while (!signal.aborted) {
        await deps.world.whenRoom(signal).catch(() => {});
        if (signal.aborted) return;
        const isAll = round(deps, seen);
        await clock.sleep(isAll ? roundMs : 100, signal).catch(() => {});
      }
    },
  };
}

/** Whether all that had to go is gone. */
function round(deps: EventExpiryDeps, seen: LastSeen): boolean {
  try {
    const going = surplus(deps, seen);
    for (const event of going.slice(0, batch)) deps.hand.delete(events, event);
    return going.length <= batch;
  } catch (error) {
    deps.log.error('Cannot take away old events', error);
    return true;
  }
}

/** What is too old; and of what is too many the oldest, those about pods that are still there last. */
function surplus({ world, keptForMs, most }: EventExpiryDeps, seen: LastSeen): readonly StoredObject[] {
  const oldest = world.clock.now() - keptForMs;
  const dated = world.objects.all(events).map((event) => ({ event, at: seen(event) }));
  const expired = dated.filter(({ at }) => at < oldest);
  const tooMany = dated.length - expired.length - most;
  if (tooMany <= 0) return expired.map(({ event }) => event);
  const rest = dated
    .filter(({ at }) => at >= oldest)
    .map((one) => ({ ...one, isLive: isOfLivePod(world, one.event) }))
    .toSorted((a, b) => Number(a.isLive) - Number(b.isLive) || a.at - b.at);
  return [...expired, ...rest.slice(0, tooMany)].map(({ event }) => event);
}

/** Stored objects never change: the times of each are read once. */
function remembered(): LastSeen {
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

function isOfLivePod(world: World, object: StoredObject): boolean {
  const { kind, namespace, name = '', uid } = (object as unknown as Event).involvedObject ?? {};
  if (kind !== 'Pod') return false;
  const pod = world.objects.get(pods, namespace, name);
  return pod !== undefined && (uid === undefined || uid === pod.metadata.uid);
}
