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

  event(pod: Pod, event: PodEvent): void {
    const flight = this.#flight(pod.metadata.uid);
    flight.fullName = fullNameOf(pod);
    const at = this.#clock.now();
    const last = flight.entries.last;
    if (last?.is === 'event' && sameEvent(last, event)) {
      flight.entries.replaceLast({ ...last, at, count: last.count + 1 });
    } else flight.entries.push({ ...event, is: 'event', at, since: at, count: 1 });
  }

  step(uid: PodUid, step: PodStep): void {
    const flight = this.#flight(uid);
    const at = this.#clock.now();
    const last = flight.entries.last;
    // A pod that waits says so on every sync: the story keeps when it last did.
    if (last?.is === 'step' && sameStep(last, step)) flight.entries.replaceLast({ ...step, is: 'step', at });
    else flight.entries.push({ ...step, is: 'step', at });
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

function storyOf(uid: PodUid, { fullName, entries }: Flight): PodStory {
  return { uid, fullName, entries: [...entries], dropped: entries.dropped };
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
