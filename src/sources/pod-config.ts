import { type Clock, type Instant, KubelingError, type Logger, Waiters } from '../lib/index.ts';
import {
  annotations,
  changeOf,
  describePod,
  type Pod,
  type PodJournal,
  type PodSource,
  type PodUid,
} from '../pods/index.ts';
import {
  dropDuplicates,
  type KnownPods,
  mergePod,
  mergePods,
  type PodListChanges,
  type PodOperation,
  withAnnotation,
} from './merge.ts';

/** A change of the desired pods, one batch of one kind from one source. */
export interface PodUpdate {
  readonly op: PodOperation;
  readonly pods: readonly Pod[];
  readonly source: PodSource;
}

export interface PodConfigOptions {
  /** Those that are set up; nobody waits for any other. */
  readonly sources: readonly PodSource[];
  readonly clock: Clock;
  readonly logger: Logger;
  readonly journal: PodJournal;
  readonly isFinished: IsFinished;
}

/** One source, once it has sent a list. */
interface SourceState {
  /** What is known of its pods. */
  readonly known: Map<PodUid, Pod>;
  /** The pods of the list, as the source has sent them. */
  readonly listed: Map<PodUid, Pod>;
  readonly delivered: DeliveredPods;
}

/**
 * Merges the lists the sources send (SET), and what they say has changed about them, into one ordered stream of changes.
 * What changes is told only when somebody takes it, as the difference between what was told before and what holds now:
 * what was undone in the meantime is not told at all, and a source that changes its mind often makes nobody wait and
 * nothing grow. What it hands out is frozen: whoever wants to change a pod copies it.
 */
export class PodConfig {
  readonly #options: PodConfigOptions;
  readonly #sources = new Map<PodSource, SourceState>();
  /** Those of which anything was told. */
  readonly #delivered = new Set<PodSource>();
  /** Sources that may have something to tell, the one that waits longest first. */
  readonly #changed = new Set<PodSource>();
  readonly #waiters = new Waiters<void>();
  /** Sources the sync loop has handled at least one update of. */
  readonly #handled = new Set<PodSource>();
  /** Sources that have not spoken yet, and for which a list of earlier stands. */
  readonly #expected = new Set<PodSource>();

  constructor(options: PodConfigOptions) {
    this.#options = options;
  }

  /**
   * Takes the list a source has sent in an earlier life of the kubelet, for as long as it says nothing itself. The pods on
   * it are wanted, but nobody is judged by it: the source is not ready. A source that has spoken is not foreseen.
   */
  setExpected(source: PodSource, pods: readonly Pod[]): 'expected' | 'already-listed' {
    if (this.#sources.has(source)) return 'already-listed';
    this.set(source, pods);
    this.#expected.add(source);
    return 'expected';
  }

  /** Takes the complete list of a source's pods. */
  set(source: PodSource, pods: readonly Pod[]): void {
    // Its first word of its own is told, and has to be handled, whatever was foreseen.
    if (this.#expected.delete(source)) this.#delivered.delete(source);
    const before = this.#sources.get(source);
    const unique = this.#unique(source, pods);
    const seen = this.#timeSeen();
    const known = mergePods(before?.known ?? new Map(), unique, (pod) => {
      // The very same object as last time has nothing new to say, however many there are.
      if (before?.listed.get(pod.metadata.uid) === pod) return 'as-before';
      return { pod: withAnnotation(pod, annotations.source, source), seen };
    });
    const delivered = before?.delivered ?? { pods: new Map(), dirty: new Set() };
    for (const uid of before?.known.keys() ?? []) if (!known.has(uid)) delivered.dirty.add(uid);
    for (const [uid, pod] of known) {
      if (before?.known.get(uid) === pod) continue;
      deepFreeze(pod);
      delivered.dirty.add(uid);
    }
    const listed = new Map(unique.map((pod) => [pod.metadata.uid, pod]));
    this.#markChanged(source, { known, listed, delivered });
  }

  /** The same, with what has changed about the list a source has sent before. Takes as long as that is long. */
  change(source: PodSource, { removed, present }: PodListChanges): void {
    const state = this.#sources.get(source);
    if (state === undefined)
      throw new KubelingError('BUG', `Nothing can change as ${source} has sent no list`);
    const { known, listed, delivered } = state;
    for (const uid of removed) {
      known.delete(uid);
      listed.delete(uid);
      delivered.dirty.add(uid);
    }
    const seen = this.#timeSeen();
    for (const pod of present) {
      const { uid } = pod.metadata;
      if (listed.get(uid) === pod) continue;
      const merged = mergePod(known.get(uid), withAnnotation(pod, annotations.source, source), seen);
      known.set(uid, deepFreeze(merged));
      listed.set(uid, pod);
      delivered.dirty.add(uid);
    }
    this.#markChanged(source, state);
  }

  /** Resolves when there may be something to take. */
  async changed(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#changed.size === 0) await this.#waiters.wait(signal);
  }

  /** The next of what has changed since it was told last, as it is now; undefined when everything is told. */
  takeUpdate(): PodUpdate | undefined {
    for (const source of this.#changed) {
      const next = this.#next(source);
      if (next !== undefined) return { ...next, source };
      this.#changed.delete(source);
    }
    return undefined;
  }

  /** The sync loop has finished handling an update of that source. */
  markHandled(source: PodSource): void {
    if (this.#handled.has(source) || this.#expected.has(source)) return;
    this.#handled.add(source);
    this.#options.logger.info('A source of pods is ready', { source });
  }

  /** Whether the source has sent a list and an update of it was handled. Never goes back. */
  isReady(source: PodSource): boolean {
    return this.#sources.has(source) && this.#handled.has(source) && !this.#expected.has(source);
  }

  allReady(): boolean {
    return this.#options.sources.every((source) => this.isReady(source));
  }

  /** Whether there is one that is ready, or none to wait for. */
  someReady(): boolean {
    const { sources } = this.#options;
    return sources.length === 0 || sources.some((source) => this.isReady(source));
  }

  /** The sources that are set up, each with its readiness. */
  readiness(): readonly { readonly source: PodSource; readonly ready: boolean }[] {
    return this.#options.sources.map((source) => ({ source, ready: this.isReady(source) }));
  }

  /** A first list that has no pods is told all the same: it is how the sync loop learns that the source is there. */
  #next(source: PodSource): Omit<PodUpdate, 'source'> | undefined {
    const state = this.#sources.get(source);
    if (state === undefined) return undefined;
    const isFirst = !this.#delivered.has(source);
    this.#delivered.add(source);
    const next = nextChange(state.delivered, state.known, this.#options.isFinished);
    return next ?? (isFirst ? { op: 'ADD', pods: [] } : undefined);
  }

  #markChanged(source: PodSource, listed: SourceState): void {
    this.#sources.set(source, listed);
    this.#changed.add(source);
    this.#waiters.resolveAll();
  }

  #timeSeen(): string {
    return timeSeen(this.#options.clock.now());
  }

  #unique(source: PodSource, pods: readonly Pod[]): readonly Pod[] {
    const { unique, repeated } = dropDuplicates(pods);
    for (const { pod, what } of repeated) {
      const value = what === 'name' ? pod.metadata.name : pod.metadata.uid;
      const message = `The pod ${describePod(pod)} from the source ${source} is left out: a pod before it in the same list has the ${what} ${value} too`;
      this.#options.logger.warn(message, { source });
      this.#options.journal.event(pod, { type: 'Warning', reason: 'FailedValidation', message });
    }
    return unique;
  }
}

/** As annotations have it: with nine digits behind the second, of which the clock knows three. */
function timeSeen(now: Instant): string {
  return new Date(now).toISOString().replace('Z', '000000Z');
}

/** What is frozen already is so to the bottom, as nothing else freezes. */
function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  Object.freeze(value);
  for (const part of Object.values(value)) deepFreeze(part);
  return value;
}

export interface Change {
  readonly op: PodOperation;
  readonly pods: readonly Pod[];
}

/** What the sync loop was told of a source, and of which pods that may not be what is known of them. */
export interface DeliveredPods {
  readonly pods: Map<PodUid, Pod>;
  readonly dirty: Set<PodUid>;
}

/**
 * The order in which changes are told. What is removed goes first: a pod recreated under its old name is another pod
 * with the same name, and must not meet its predecessor.
 */
const deliveryOrder: readonly PodOperation[] = ['REMOVE', 'ADD', 'UPDATE', 'DELETE', 'RECONCILE'];

/** Whether a pod that was told is on its way out or has ended. */
export type IsFinished = (uid: PodUid) => boolean;

/**
 * What is to be told next to get from what was told to what is known, one kind at a time; undefined when everything is
 * told. It counts as told from then on. Takes as long as there are pods in doubt, however many there are.
 */
export function nextChange(
  delivered: DeliveredPods,
  known: KnownPods,
  isFinished: IsFinished,
): Change | undefined {
  const changes = changesOf(delivered, known, isFinished);
  const op = deliveryOrder.find((each) => changes.has(each));
  if (op === undefined) return undefined;
  const pods = changes.get(op) ?? [];
  for (const pod of pods) {
    const { uid } = pod.metadata;
    if (op === 'REMOVE') delivered.pods.delete(uid);
    else delivered.pods.set(uid, pod);
  }
  return { op, pods };
}

/** One that was gone in between, and nobody knew, goes on, unless it has ended: then it is wanted once more. */
function adoptRecreated(before: Pod, now: Pod | undefined, isFinished: IsFinished): Pod {
  if (now === undefined || isSameIncarnation(before, now) || isFinished(now.metadata.uid)) return before;
  return withAnnotation(before, annotations.seen, now.metadata.annotations?.[annotations.seen] ?? '');
}

function changesOf(
  { pods, dirty }: DeliveredPods,
  known: KnownPods,
  isFinished: IsFinished,
): ReadonlyMap<PodOperation, readonly Pod[]> {
  const changes = new Map<PodOperation, Pod[]>();
  for (const uid of dirty) {
    const [previous, now] = [pods.get(uid), known.get(uid)];
    const before = previous && adoptRecreated(previous, now, isFinished);
    if (before !== undefined && before !== previous) pods.set(uid, before);
    const op = operationOf(before, now);
    const pod = op === 'REMOVE' ? before : now;
    if (op === undefined || pod === undefined) {
      dirty.delete(uid);
      continue;
    }
    const same = changes.get(op);
    if (same === undefined) changes.set(op, [pod]);
    else same.push(pod);
  }
  return changes;
}

function operationOf(before: Pod | undefined, pod: Pod | undefined): PodOperation | undefined {
  if (before === undefined) return pod === undefined ? undefined : 'ADD';
  if (before === pod) return undefined;
  if (pod === undefined || !isSameIncarnation(before, pod)) return 'REMOVE';
  switch (changeOf(before, pod)) {
    case 'none':
      return undefined;
    case 'status':
      return 'RECONCILE';
    case 'desired':
      return pod.metadata.deletionTimestamp === undefined ? 'UPDATE' : 'DELETE';
  }
}

function isSameIncarnation(before: Pod, now: Pod): boolean {
  const seen = (pod: Pod) => pod.metadata.annotations?.[annotations.seen];
  return seen(before) === seen(now);
}
