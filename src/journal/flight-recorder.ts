import { type Clock, type Instant, LruMap, Ring } from '../lib/index.ts';
import {
  fullNameOf,
  type Pod,
  type PodEvent,
  type PodJournal,
  type PodStep,
  type PodUid,
} from '../pods/index.ts';

/** One line of a pod's story. */
export type StoryEntry = StoryStep | StoryEvent;

export interface StoryStep extends PodStep {
  readonly is: 'step';
  readonly at: Instant;
}

export interface StoryEvent extends PodEvent {
  readonly is: 'event';
  readonly at: Instant;
  /** How often it came in a row; `at` is the last time, `since` the first. */
  readonly count: number;
  readonly since: Instant;
}

export interface PodStory {
  readonly uid: PodUid;
  /** `name_namespace`, once it is known. */
  readonly fullName: string | undefined;
  readonly entries: readonly StoryEntry[];
  /** How many older entries made room. */
  readonly dropped: number;
}

export interface FlightRecorderOptions {
  readonly clock: Clock;
  /** Static pods carry it at the end of their name; people ask for them by the name they wrote. */
  readonly nodeName?: string;
  /** How many pods are remembered, gone ones included; 1,000 unless given. */
  readonly pods?: number;
  /** How much of each; 200 entries unless given. */
  readonly entriesPerPod?: number;
}

interface Flight {
  readonly beganMs: number;
  fullName: string | undefined;
  readonly entries: Ring<StoryEntry>;
}

/**
 * Keeps each pod's way, every retry and failure with its time and cause, in memory that does not grow. A pod that is
 * gone is remembered until others need the room: its end is what people ask about.
 */
export class FlightRecorder implements PodJournal {
  readonly #clock: Clock;
  readonly #nodeName: string | undefined;
  readonly #entriesPerPod: number;
  readonly #flights: LruMap<PodUid, Flight>;

  constructor({ clock, nodeName, pods = 1_000, entriesPerPod = 200 }: FlightRecorderOptions) {
    this.#clock = clock;
    this.#nodeName = nodeName;
    this.#entriesPerPod = entriesPerPod;
    this.#flights = new LruMap({ capacity: pods });
  }

  event(pod: Pod, told: PodEvent): void {
    const event = { ...told, message: bounded(told.message) };
    const flight = this.#flight(pod.metadata.uid);
    flight.fullName = fullNameOf(pod);
    const at = this.#clock.now();
    const last = flight.entries.last;
    if (last?.is === 'event' && sameEvent(last, event)) {
      flight.entries.replaceLast({ ...last, at, count: last.count + 1 });
      return;
    }
    // Several troubles take turns with every retry: what led to them must not be pushed out by that.
    const before = event.type === 'Warning' ? takeOut(flight.entries, isSameEvent(event)) : undefined;
    const [since, count] = before?.is === 'event' ? [before.since, before.count + 1] : [at, 1];
    flight.entries.push({ ...event, is: 'event', at, since, count });
  }

  step(uid: PodUid, told: PodStep): void {
    const step = { ...told, message: bounded(told.message) };
    const flight = this.#flight(uid);
    const at = this.#clock.now();
    const last = flight.entries.last;
    // A pod that waits says so on every sync: the story keeps when it last did.
    if (last?.is === 'step' && sameStep(last, step)) {
      flight.entries.replaceLast({ ...step, is: 'step', at });
      return;
    }
    if (step.outcome !== 'done') takeOut(flight.entries, isSameTrouble(step));
    flight.entries.push({ ...step, is: 'step', at });
  }

  /** By UID, by `name_namespace` or by name, each also as a manifest gives it; all that fit, the oldest first. */
  find(key: string): readonly PodStory[] {
    return this.#inOrder()
      .filter(([uid, { fullName }]) => uid === key || this.isCalled(fullName, key))
      .map(([uid, flight]) => storyOf(uid, flight));
  }

  /** Whether a pod of this full name is what is asked for. */
  isCalled(fullName: string | undefined, key: string): boolean {
    if (fullName === undefined) return false;
    const [wanted = '', wantedNamespace] = key.split('_');
    const [name = '', namespace] = fullName.split('_');
    if (wantedNamespace !== undefined && wantedNamespace !== namespace) return false;
    return name === wanted || (this.#nodeName !== undefined && name === `${wanted}-${this.#nodeName}`);
  }

  all(): readonly PodStory[] {
    return this.#inOrder().map(([uid, flight]) => storyOf(uid, flight));
  }

  /** As they began; the map has them by their last use. */
  #inOrder(): readonly (readonly [PodUid, Flight])[] {
    return [...this.#flights].sort(([, one], [, other]) => one.beganMs - other.beganMs);
  }

  #flight(uid: PodUid): Flight {
    const known = this.#flights.get(uid);
    if (known !== undefined) return known;
    const beganMs = this.#clock.monotonicMs();
    const flight: Flight = { beganMs, fullName: undefined, entries: new Ring(this.#entriesPerPod) };
    this.#flights.set(uid, flight);
    return flight;
  }
}

/** As much as the API takes of an event. */
const longestMessage = 1_024;

/** What containers and runtimes say may be long. A copy: a mere slice would keep all of it in memory. */
function bounded(message: string): string {
  if (message.length <= longestMessage) return message;
  return `${Buffer.from(message.slice(0, longestMessage - 1)).toString('utf8')}…`;
}

function storyOf(uid: PodUid, { fullName, entries }: Flight): PodStory {
  return { uid, fullName, entries: [...entries], dropped: entries.dropped };
}

type Fits = (entry: StoryEntry) => boolean;

/** Takes the entry that fits out of the middle. */
function takeOut(ring: Ring<StoryEntry>, fits: Fits): StoryEntry | undefined {
  const entries = ring.toArray();
  const index = entries.findLastIndex(fits);
  if (index < 0) return undefined;
  ring.clear();
  for (const entry of entries.toSpliced(index, 1)) ring.push(entry);
  return entries[index];
}

function isSameEvent(event: PodEvent): Fits {
  return (entry) => entry.is === 'event' && sameEvent(entry, event);
}

function isSameTrouble({ stage, container, outcome, message }: PodStep): Fits {
  return (entry) =>
    entry.is === 'step' &&
    entry.stage === stage &&
    entry.container === container &&
    entry.outcome === outcome &&
    entry.message === message;
}

function sameEvent(one: PodEvent, other: PodEvent): boolean {
  return (
    one.type === other.type &&
    one.reason === other.reason &&
    one.message === other.message &&
    one.fieldPath === other.fieldPath
  );
}

function sameStep(one: PodStep, other: PodStep): boolean {
  return (
    other.outcome === 'waiting' &&
    one.outcome === 'waiting' &&
    one.stage === other.stage &&
    one.container === other.container &&
    (one.message === other.message || (one.keep === 'last' && other.keep === 'last'))
  );
}
