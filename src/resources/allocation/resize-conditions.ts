import type { PodCondition } from '../../kinds/index.ts';
import { apiTime, type Clock } from '../../lib/index.ts';
import type { Pod, PodUid } from '../../pods/index.ts';

export type PendingReason = 'Deferred' | 'Infeasible';

/** One of the two resize conditions of a pod; it is either present or absent, never False. */
interface ResizeCondition {
  /** The reason of the condition; empty if it has none. */
  readonly reason: string;
  readonly message: string;
  /** The pod generation that requested the resize. */
  readonly generation: number | undefined;
  /** The wall time at which the condition got this reason. */
  readonly sinceMs: number;
}

interface Entry {
  readonly pending?: ResizeCondition | undefined;
  readonly inProgress?: ResizeCondition | undefined;
}

const pendingType = 'PodResizePending';
const inProgressType = 'PodResizeInProgress';

/** The resize conditions of each pod status. */
export class ResizeConditions {
  readonly #clock: Clock;
  readonly #entries = new Map<PodUid, Entry>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** Restores the resize conditions that a previous kubelet published in the pod status. */
  restore({ metadata: { uid }, status }: Pod): void {
    const found = (type: string) => {
      const condition = status.conditions?.find((one) => one.type === type);
      return condition === undefined ? undefined : this.#restored(condition);
    };
    const before = this.#entries.get(uid);
    this.#put(uid, {
      pending: before?.pending ?? found(pendingType),
      inProgress: before?.inProgress ?? found(inProgressType),
    });
  }

  of(uid: PodUid): readonly PodCondition[] {
    const { pending, inProgress } = this.#entries.get(uid) ?? {};
    return [
      ...(pending === undefined ? [] : [conditionOf(pendingType, pending)]),
      ...(inProgress === undefined ? [] : [conditionOf(inProgressType, inProgress)]),
    ];
  }

  pendingReason(uid: PodUid): string | undefined {
    return this.#entries.get(uid)?.pending?.reason;
  }

  /**
   * Returns the wall time since when the resize of the pod is pending; undefined if none is
   * pending.
   */
  pendingSinceMs(uid: PodUid): number | undefined {
    return this.#entries.get(uid)?.pending?.sinceMs;
  }

  isInProgress(uid: PodUid): boolean {
    return this.#entries.get(uid)?.inProgress !== undefined;
  }

  /** Marks a resize as pending; returns whether its reason or generation has changed. */
  setPending({ metadata: { uid, generation } }: Pod, reason: PendingReason, message: string): boolean {
    const entry = this.#entries.get(uid);
    const before = entry?.pending;
    this.#put(uid, { ...entry, pending: this.#next(before, { reason, message, generation }) });
    return before?.reason !== reason || before.generation !== generation;
  }

  clearPending(uid: PodUid): void {
    this.#put(uid, { ...this.#entries.get(uid), pending: undefined });
  }

  /** Starts a resize and clears the state of a previous one. */
  begin({ metadata: { uid, generation } }: Pod): void {
    const inProgress = this.#next(undefined, { reason: '', message: '', generation });
    this.#put(uid, { ...this.#entries.get(uid), inProgress });
  }

  /**
   * Marks the resize as in progress while the pod does not run with its allocation; keeps its error
   * and start time.
   */
  goOn({ metadata: { uid, generation } }: Pod): void {
    const entry = this.#entries.get(uid);
    if (entry?.inProgress !== undefined) return;
    const inProgress = this.#next(undefined, { reason: '', message: '', generation });
    this.#put(uid, { ...entry, inProgress });
  }

  /** Marks the resize as failed; returns its generation if the failure is new. */
  fail({ metadata: { uid, generation } }: Pod, message: string): { readonly generation: number } | undefined {
    const entry = this.#entries.get(uid);
    const before = entry?.inProgress;
    const failed = before === undefined ? generation : before.generation;
    this.#put(uid, {
      ...entry,
      inProgress: this.#next(before, { reason: 'Error', message, generation: failed }),
    });
    return before?.reason === 'Error' && before.message === message ? undefined : { generation: failed ?? 0 };
  }

  /**
   * Returns the generation of the completed resize, if one was in progress. An observation from
   * before the last edit does not complete it.
   */
  complete({ metadata: { uid, generation = 0 } }: Pod): { readonly generation: number } | undefined {
    const entry = this.#entries.get(uid);
    if (entry?.inProgress === undefined || generation < (entry.inProgress.generation ?? 0)) return undefined;
    this.#put(uid, { ...entry, inProgress: undefined });
    return { generation: entry.inProgress.generation ?? 0 };
  }

  forget(uid: PodUid): void {
    this.#entries.delete(uid);
  }

  retain(isKept: (uid: PodUid) => boolean): void {
    for (const uid of this.#entries.keys()) if (!isKept(uid)) this.#entries.delete(uid);
  }

  /** Returns the number of pending resizes by reason, and the number of resizes in progress. */
  counts(): { readonly pending: ReadonlyMap<string, number>; readonly inProgress: number } {
    const all = [...this.#entries.values()];
    const reasons = Map.groupBy(
      all.flatMap(({ pending }) => pending ?? []),
      ({ reason }) => reason,
    );
    return {
      pending: new Map([...reasons].map(([reason, list]) => [reason, list.length])),
      inProgress: all.filter(({ inProgress }) => inProgress !== undefined).length,
    };
  }

  #put(uid: PodUid, entry: Entry): void {
    if (entry.pending === undefined && entry.inProgress === undefined) this.#entries.delete(uid);
    else this.#entries.set(uid, entry);
  }

  #next(before: ResizeCondition | undefined, now: Omit<ResizeCondition, 'sinceMs'>): ResizeCondition {
    const sinceMs = before?.reason === now.reason ? before.sinceMs : this.#clock.now();
    return { ...now, sinceMs };
  }

  #restored({
    reason = '',
    message = '',
    observedGeneration,
    lastTransitionTime,
  }: PodCondition): ResizeCondition {
    const sinceMs = Date.parse(lastTransitionTime ?? '');
    return {
      reason,
      message,
      generation: observedGeneration,
      sinceMs: Number.isNaN(sinceMs) ? this.#clock.now() : sinceMs,
    };
  }
}

function conditionOf(type: string, { reason, message, generation, sinceMs }: ResizeCondition): PodCondition {
  return {
    type,
    status: 'True',
    reason: reason === '' ? undefined : reason,
    message: message === '' ? undefined : message,
    observedGeneration: generation,
    lastTransitionTime: apiTime(sinceMs),
  };
}
