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

/** One batch of pod changes with the same operation from one source. */
export interface PodUpdate {
  readonly op: PodOperation;
  readonly pods: readonly Pod[];
  readonly source: PodSource;
}

export interface PodConfigOptions {
  /** The configured sources; other sources do not affect readiness. */
  readonly sources: readonly PodSource[];
  readonly clock: Clock;
  readonly logger: Logger;
  readonly journal: PodJournal;
  readonly isFinished: IsFinished;
}

/** State of one source after its first list. */
interface SourceState {
  /** The merged pods of the source, by UID. */
  readonly known: Map<PodUid, Pod>;
  /** The pods as the source last sent them, by UID. */
  readonly listed: Map<PodUid, Pod>;
  readonly delivered: DeliveredPods;
}

/**
 * Merges the pod lists and list changes of all sources into one ordered stream of updates. An
 * update is computed when it is taken, as the difference between the delivered and the current
 * state. So a change that is undone before its delivery causes no update, and a source that changes
 * often neither blocks the sync loop nor grows a queue. Delivered pods are frozen: copy a pod to
 * change it.
 */
export class PodConfig {
  readonly #options: PodConfigOptions;
  readonly #sources = new Map<PodSource, SourceState>();
  /** Sources with at least one delivered update. */
  readonly #delivered = new Set<PodSource>();
  /** Sources that may have a pending update, longest waiting first. */
  readonly #changed = new Set<PodSource>();
  readonly #waiters = new Waiters<void>();
  /** Sources with at least one update handled by the sync loop. */
  readonly #handled = new Set<PodSource>();
  /**
   * Sources that have not sent a list, for which a list from the previous kubelet process is used.
   */
  readonly #expected = new Set<PodSource>();

  constructor(options: PodConfigOptions) {
    this.#options = options;
  }

  /**
   * Uses the list that the source sent to a previous kubelet process, until the source sends one
   * itself. Its pods are desired, but the source is not ready, so no pod is removed because it is
   * missing from the list. Does nothing for a source that has sent a list.
   */
  setExpected(source: PodSource, pods: readonly Pod[]): 'expected' | 'already-listed' {
    if (this.#sources.has(source)) return 'already-listed';
    this.set(source, pods);
    this.#expected.add(source);
    return 'expected';
  }

  /** Sets the complete list of a source's pods. */
  set(source: PodSource, pods: readonly Pod[]): void {
    // The source's first list is delivered and must be handled, even if it equals the list restored
    // from the previous kubelet.
    if (this.#expected.delete(source)) this.#delivered.delete(source);
    const before = this.#sources.get(source);
    const unique = this.#unique(source, pods);
    const seenAt = this.#timeSeen();
    const known = mergePods(before?.known ?? new Map(), unique, (pod) => {
      // An identical pod object is unchanged and is not compared, so a long list costs little.
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

  /** Applies changes to the last list of the source, at a cost linear in the number of changes. */
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

  /**
   * Whether the source has sent a list and one of its updates was handled; never becomes false
   * again.
   */
  isReady(source: PodSource): boolean {
    return this.#sources.has(source) && this.#handled.has(source) && !this.#expected.has(source);
  }

  allReady(): boolean {
    return this.#options.sources.every((source) => this.isReady(source));
  }

  /** Whether any source is ready; also true when no source is configured. */
  someReady(): boolean {
    const { sources } = this.#options;
    return sources.length === 0 || sources.some((source) => this.isReady(source));
  }

  /** The configured sources with their readiness. */
  readiness(): readonly { readonly source: PodSource; readonly ready: boolean }[] {
    return this.#options.sources.map((source) => ({ source, ready: this.isReady(source) }));
  }

  /**
   * Returns the next update of the source. A first list without pods is delivered too, because it
   * makes the source ready.
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

/**
 * Formats a time with nine decimal places, as Kubernetes' annotations have them; the clock provides
 * three.
 */
function timeSeen(now: Instant): string {
  return new Date(now).toISOString().replace('Z', '000000Z');
}

/**
 * Freezes a value with all its parts. A value that is already frozen is skipped: no other function
 * freezes pods, so all its parts are frozen too.
 */
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

/** The delivered pods of a source, and the pods that may have changed since. */
export interface DeliveredPods {
  readonly pods: Map<PodUid, Pod>;
  readonly dirty: Set<PodUid>;
}

/**
 * Removals are delivered first, so that a recreated pod is added only after the previous pod of the
 * same name was removed.
 */
const deliveryOrder: readonly PodOperation[] = ['REMOVE', 'ADD', 'UPDATE', 'DELETE', 'RECONCILE'];

/** Returns whether the pod with this UID is terminating or terminated. */
export type IsFinished = (uid: PodUid) => boolean;

/**
 * Returns the next operation that changes the delivered pods to the current ones, and records it as
 * delivered; undefined when no change is pending. The cost is linear in the number of pods that may
 * have changed.
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
 * Treats a pod that was removed and added again between two deliveries as the delivered pod, except
 * when that pod has finished: then REMOVE and ADD are delivered.
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
