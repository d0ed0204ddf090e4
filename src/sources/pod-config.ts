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

/** A change of the desired pods: one batch of one operation from one source. */
export interface PodUpdate {
  readonly op: PodOperation;
  readonly pods: readonly Pod[];
  readonly source: PodSource;
}

export interface PodConfigOptions {
  /** The configured sources; readiness waits for these only. */
  readonly sources: readonly PodSource[];
  readonly clock: Clock;
  readonly logger: Logger;
  readonly journal: PodJournal;
  readonly isFinished: IsFinished;
}

/** State of one source after its first list. */
interface SourceState {
  /** The merged pods. */
  readonly known: Map<PodUid, Pod>;
  /** The pods of the list as the source sent them. */
  readonly listed: Map<PodUid, Pod>;
  readonly delivered: DeliveredPods;
}

/**
 * Merges the lists of all sources (SET) and their changes into one ordered stream of updates. An
 * update is computed when it is taken, as the difference between what was delivered and the current
 * state. So a change that is undone before it was delivered causes no update, and a source that
 * changes often neither blocks the sync loop nor grows a queue. Delivered pods are frozen: copy a
 * pod to change it.
 */
export class PodConfig {
  readonly #options: PodConfigOptions;
  readonly #sources = new Map<PodSource, SourceState>();
  /** Sources of which an update was delivered. */
  readonly #delivered = new Set<PodSource>();
  /** Sources that may have an update, the longest waiting first. */
  readonly #changed = new Set<PodSource>();
  readonly #waiters = new Waiters<void>();
  /** Sources of which the sync loop has handled at least one update. */
  readonly #handled = new Set<PodSource>();
  /**
   * Sources that have sent no list themselves and for which a list of the previous kubelet process
   * is used.
   */
  readonly #expected = new Set<PodSource>();

  constructor(options: PodConfigOptions) {
    this.#options = options;
  }

  /**
   * Uses the list that the source sent to a previous kubelet process until the source sends one
   * itself. Its pods are desired, but the source is not ready, so no pod is removed because of it.
   * A source that has sent a list is left alone.
   */
  setExpected(source: PodSource, pods: readonly Pod[]): 'expected' | 'already-listed' {
    if (this.#sources.has(source)) return 'already-listed';
    this.set(source, pods);
    this.#expected.add(source);
    return 'expected';
  }

  /** Takes the complete list of a source's pods. */
  set(source: PodSource, pods: readonly Pod[]): void {
    // The first list of the source itself is delivered, and must be handled, even if it equals the
    // expected one.
    if (this.#expected.delete(source)) this.#delivered.delete(source);
    const before = this.#sources.get(source);
    const unique = this.#unique(source, pods);
    const seenAt = this.#timeSeen();
    const known = mergePods(before?.known ?? new Map(), unique, (pod) => {
      // An identical object is unchanged, so a long list costs little.
      if (before?.listed.get(pod.metadata.uid) === pod) return 'as-before';
      return { pod: withAnnotation(pod, annotations.source, source), seenAt };
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

  /**
   * Like `set`, but with the changes since the last list of the source. The cost is linear in the
   * number of changes.
   */
  change(source: PodSource, { removed, present }: PodListChanges): void {
    const state = this.#sources.get(source);
    if (state === undefined)
      throw new KubelingError('BUG', `Cannot apply changes of ${source}: it has sent no list`);
    const { known, listed, delivered } = state;
    for (const uid of removed) {
      known.delete(uid);
      listed.delete(uid);
      delivered.dirty.add(uid);
    }
    const seenAt = this.#timeSeen();
    for (const pod of present) {
      const { uid } = pod.metadata;
      if (listed.get(uid) === pod) continue;
      const merged = mergePod(known.get(uid), withAnnotation(pod, annotations.source, source), seenAt);
      known.set(uid, deepFreeze(merged));
      listed.set(uid, pod);
      delivered.dirty.add(uid);
    }
    this.#markChanged(source, state);
  }

  /** Resolves when an update may be pending. */
  async changed(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#changed.size === 0) await this.#waiters.wait(signal);
  }

  /**
   * Returns the next pending update with the current state, or undefined when everything is
   * delivered.
   */
  takeUpdate(): PodUpdate | undefined {
    for (const source of this.#changed) {
      const next = this.#next(source);
      if (next !== undefined) return { ...next, source };
      this.#changed.delete(source);
    }
    return undefined;
  }

  /** Records that the sync loop has handled an update of the source. */
  markHandled(source: PodSource): void {
    if (this.#handled.has(source) || this.#expected.has(source)) return;
    this.#handled.add(source);
    this.#options.logger.info('Pod source is ready', { source });
  }

  /** Whether the source has sent a list and one of its updates was handled. Never reset. */
  isReady(source: PodSource): boolean {
    return this.#sources.has(source) && this.#handled.has(source) && !this.#expected.has(source);
  }

  allReady(): boolean {
    return this.#options.sources.every((source) => this.isReady(source));
  }

  /** True when any source is ready, or none is configured. */
  someReady(): boolean {
    const { sources } = this.#options;
    return sources.length === 0 || sources.some((source) => this.isReady(source));
  }

  /** The configured sources, each with its readiness. */
  readiness(): readonly { readonly source: PodSource; readonly ready: boolean }[] {
    return this.#options.sources.map((source) => ({ source, ready: this.isReady(source) }));
  }

  /**
   * A first list without pods is delivered too: this is how the sync loop learns that the source is
   * ready.
   */
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
      const message = `Left out pod ${describePod(pod)} of the source ${source}: an earlier pod of the same list has the same ${what} ${value}. Give one of them another ${what}`;
      this.#options.logger.warn(message, { source });
      this.#options.journal.event(pod, { type: 'Warning', reason: 'FailedValidation', message });
    }
    return unique;
  }
}

/** Annotations have nine digits of a second; the clock provides three. */
function timeSeen(now: Instant): string {
  return new Date(now).toISOString().replace('Z', '000000Z');
}

/** A frozen value is frozen completely, because only this function freezes pods. */
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

/** The pods of a source as they were delivered, and those that may have changed since. */
export interface DeliveredPods {
  readonly pods: Map<PodUid, Pod>;
  readonly dirty: Set<PodUid>;
}

/**
 * The order of operations. Removals come first, because a pod recreated under its name must not
 * meet its predecessor.
 */
const deliveryOrder: readonly PodOperation[] = ['REMOVE', 'ADD', 'UPDATE', 'DELETE', 'RECONCILE'];

/** Whether the pod with this UID is terminating or terminated. */
export type IsFinished = (uid: PodUid) => boolean;

/**
 * Returns the next operation that leads from the delivered pods to the current ones, and records it
 * as delivered; undefined when nothing is pending. The cost is linear in the number of dirty pods.
 */
function nextChange(delivered: DeliveredPods, known: KnownPods, isFinished: IsFinished): Change | undefined {
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

/**
 * A pod that was removed and added again between two deliveries continues, unless it has finished:
 * then it is started again.
 */
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
  const seenAt = (pod: Pod) => pod.metadata.annotations?.[annotations.seen];
  return seenAt(before) === seenAt(now);
}
