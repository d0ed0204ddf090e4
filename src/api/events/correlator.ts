import { createHash } from 'node:crypto';
import type { Event } from '../../kinds/index.ts';
import { type Clock, LruMap, type Random } from '../../lib/index.ts';
import { cleanMessage, type EventInput, EventNames, type EventOrigin, eventObject } from './event-object.ts';
import { eventSubjectKey } from './reference.ts';

export interface CorrelatorOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly origin: EventOrigin;
  /**
   * The maximum number of different events, and of event groups with the same object, type and
   * reason, that are remembered; 4,096 each by default.
   */
  readonly capacity?: number;
}

/** What to do with a recorded event. */
export type Correlated =
  | {
      readonly is: 'event';
      /** Events with the same key are one object in the API, whose count is updated. */
      readonly key: string;
      readonly event: Event;
      readonly sent: 'before' | 'never';
    }
  /** The event exceeds the rate limit: it is counted but not sent. */
  | { readonly is: 'spam' };

interface Observation {
  readonly name: string;
  readonly count: number;
  readonly firstTimestamp: string | undefined;
}

/**
 * Reduces the number of events: repeated events are counted, events that differ only in the message
 * are combined, and events that never stop are rate limited. The rate limit is per reason, so that
 * one reason does not suppress another.
 */
export class EventCorrelator {
  readonly #options: CorrelatorOptions;
  readonly #names: EventNames;
  readonly #similar: SimilarEvents;
  readonly #spam: SpamFilter;
  readonly #observed: LruMap<string, Observation>;

  constructor(options: CorrelatorOptions) {
    const { capacity = 4_096, random } = options;
    this.#options = options;
    this.#names = new EventNames(random);
    this.#similar = new SimilarEvents(capacity);
    this.#spam = new SpamFilter(capacity);
    this.#observed = new LruMap({ capacity });
  }

  correlate(input: EventInput): Correlated {
    const nowMs = this.#options.clock.monotonicMs();
    const note = { ...input, message: cleanMessage(input.message) };
    const groupKey = digest(eventSubjectKey(note.about), note.type, note.reason);
    const combined = this.#similar.isOneOfMany(groupKey, digest(note.message), nowMs);
    const key = combined ? groupKey : digest(groupKey, note.about.fieldPath ?? '', note.message);
    const correlated = this.#observe(key, combined ? inCommon(note) : note);
    // The rate limit is applied last, so that events that are not sent are counted too.
    return this.#spam.allows(groupKey, nowMs) ? correlated : { is: 'spam' };
  }

  #observe(key: string, note: EventInput): Correlated {
    const last = this.#observed.get(key);
    const name = last?.name ?? this.#names.next(note.about.name, note.at);
    const fresh = eventObject(note, name, this.#options.origin);
    const count = (last?.count ?? 0) + 1;
    const firstTimestamp = last?.firstTimestamp ?? fresh.firstTimestamp;
    this.#observed.set(key, { name, count, firstTimestamp });
    const event = { ...fresh, count, firstTimestamp };
    return { is: 'event', key, event, sent: last === undefined ? 'never' : 'before' };
  }
}

function inCommon(note: EventInput): EventInput {
  return { ...note, message: `(combined from similar events): ${note.message}` };
}

/** Shortens a key to a hash, because thousands of keys are stored and messages may be long. */
function digest(...parts: readonly string[]): string {
  return createHash('sha256').update(parts.join('\0')).digest('base64').slice(0, 24);
}

/**
 * The number of different messages per reason that are sent as separate events; further ones are
 * combined into one event.
 */
const mostSimilar = 10;
const similarForMs = 600_000;

interface Group {
  /** The different messages of the group, oldest first. */
  readonly messages: Set<string>;
  lastMs: number;
}

/** Finds events that differ only in their message, for example messages with changing numbers. */
class SimilarEvents {
  readonly #groups: LruMap<string, Group>;

  constructor(capacity: number) {
    this.#groups = new LruMap({ capacity });
  }

  /**
   * Whether the group has so many different messages that the given message belongs in the combined
   * event.
   */
  isOneOfMany(key: string, message: string, nowMs: number): boolean {
    const known = this.#groups.get(key);
    const group = known !== undefined && nowMs - known.lastMs <= similarForMs ? known : newGroup();
    group.messages.add(message);
    group.lastMs = nowMs;
    this.#groups.set(key, group);
    if (group.messages.size < mostSimilar) return false;
    const [oldest] = group.messages;
    if (oldest !== undefined) group.messages.delete(oldest);
    return true;
  }
}

function newGroup(): Group {
  return { messages: new Set(), lastMs: 0 };
}

const spamBurst = 25;
const spamRefillMs = 300_000;

interface Bucket {
  readonly tokens: number;
  readonly atMs: number;
}

/**
 * Admits a burst of events per key and then one every five minutes, so that a permanent failure
 * does not flood the API.
 */
class SpamFilter {
  readonly #buckets: LruMap<string, Bucket>;

  constructor(capacity: number) {
    this.#buckets = new LruMap({ capacity });
  }

  /** Whether one more event may be sent now. */
  allows(key: string, nowMs: number): boolean {
    const bucket = this.#buckets.get(key) ?? { tokens: spamBurst, atMs: nowMs };
    const tokens = Math.min(spamBurst, bucket.tokens + (nowMs - bucket.atMs) / spamRefillMs);
    const allowed = tokens >= 1;
    this.#buckets.set(key, { tokens: allowed ? tokens - 1 : tokens, atMs: nowMs });
    return allowed;
  }
}
