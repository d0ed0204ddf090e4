import { type Clock, type Instant, LruMap, Ring } from '../lib/index.ts';
import {
  fullNameOf,
  type Pod,
  type PodEvent,
  type PodJournal,
  type PodStep,
  type PodUid,
} from '../pods/index.ts';

/** One entry in the history of a pod. */
export type StoryEntry = StoryStep | StoryEvent;

export interface StoryStep extends PodStep {
  readonly is: 'step';
  readonly at: Instant;
}

export interface StoryEvent extends PodEvent {
  readonly is: 'event';
  readonly at: Instant;
  /** How often the same event was recorded in a row; `at` is the last time, `since` the first. */
  readonly count: number;
  readonly since: Instant;
}

export interface PodStory {
  readonly uid: PodUid;
  /** The full name `name_namespace`; undefined until an event with the pod was recorded. */
  readonly fullName: string | undefined;
  readonly entries: readonly StoryEntry[];
  /** How many older entries were dropped because the history was full. */
  readonly dropped: number;
}

export interface FlightRecorderOptions {
  readonly clock: Clock;
  /**
   * The node name. The names of static pods end with it, but users search for them by the name in
   * the manifest.
   */
  readonly nodeName?: string;
  /** The maximum number of pods in the recorder, including deleted pods; 1,000 by default. */
  readonly pods?: number;
  /** The maximum number of entries per pod; 200 by default. */
  readonly entriesPerPod?: number;
}

interface Flight {
  readonly beganMs: number;
  fullName: string | undefined;
  readonly entries: Ring<StoryEntry>;
}

/**
 * Records the history of each pod in bounded memory: every step, retry and failure with its time
 * and cause. The history of a deleted pod is kept until other pods need the memory, because users
 * often search for why a pod ended.
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
    // A pod that is retried may fail with several alternating warnings. A repeated warning replaces
    // its older entry, so that alternating warnings do not evict the entries before them.
    const before = event.type === 'Warning' ? takeOut(flight.entries, isSameEvent(event)) : undefined;
    const [since, count] = before?.is === 'event' ? [before.since, before.count + 1] : [at, 1];
    flight.entries.push({ ...event, is: 'event', at, since, count });
  }

  step(uid: PodUid, told: PodStep): void {
    const step = { ...told, message: bounded(told.message) };
    const flight = this.#flight(uid);
    const at = this.#clock.now();
    const last = flight.entries.last;
    // The same step is recorded on every sync of a waiting pod: the repetitions become one entry
    // with the time of the last sync.
    if (last?.is === 'step' && sameStep(last, step)) {
      flight.entries.replaceLast({ ...step, is: 'step', at });
      return;
    }
    if (step.outcome !== 'done') takeOut(flight.entries, isSameTrouble(step));
    flight.entries.push({ ...step, is: 'step', at });
  }

  /**
   * Finds histories by UID, by `name_namespace` or by name; for static pods also by the name in the
   * manifest. Returns all matches, the oldest first.
   */
  find(key: string): readonly PodStory[] {
    return this.#inOrder()
      .filter(([uid, { fullName }]) => uid === key || this.isCalled(fullName, key))
      .map(([uid, flight]) => storyOf(uid, flight));
  }

  /** Whether the key names the pod with this full name. */
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

  /** The histories in the order of their first entry; the map has them in the order of last use. */
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

/** The longest message that the API accepts in an event. */
const longestMessage = 1_024;

/**
 * Truncates a message of a container or runtime. Copies it, because a slice would keep the complete
 * message in memory.
 */
function bounded(message: string): string {
  if (message.length <= longestMessage) return message;
  return `${Buffer.from(message.slice(0, longestMessage - 1)).toString('utf8')}…`;
}

function storyOf(uid: PodUid, { fullName, entries }: Flight): PodStory {
  return { uid, fullName, entries: [...entries], dropped: entries.dropped };
}

type Fits = (entry: StoryEntry) => boolean;

/** Removes the last matching entry from the ring and returns it. */
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
