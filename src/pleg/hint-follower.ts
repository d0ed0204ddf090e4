import { LruMap } from '../lib/index.ts';
import type { ObservedContainerState, PodUid } from '../pods/index.ts';
import { itemsOf } from './lifecycle-events.ts';
import type { PodRecords } from './pod-records.ts';
import type { RuntimeHint } from './runtime-events.ts';

export interface HintFollowerDeps {
  readonly records: PodRecords;
  /** Requests a relist of one pod within the delay. */
  readonly relistPod: (uid: PodUid, delayMs: number) => void;
  /**
   * Requests a relist of all pods within the delay, unless the pods of all hinted containers are
   * known by then.
   */
  readonly relist: (delayMs: number) => void;
  /**
   * Whether the pod is terminating. Its changes are relisted together when its termination ends.
   */
  readonly isTerminating: (uid: PodUid) => boolean;
}

interface FollowedHint {
  readonly what: RuntimeHint['what'];
  readonly tries: number;
  readonly delaysMs: readonly number[];
}

/**
 * The delays of repeated relists after an event about an exit: the runtime announces an exit before
 * its listings contain it.
 */
const longDelaysMs: readonly number[] = [10, 20, 50, 100, 250, 500, 1_000, 2_000];
/**
 * Delays of repeated relists: each is about half of the previous total, so that a busy node is not
 * relisted too often.
 */
const shortDelaysMs: readonly number[] = [1, 2, 3, 5, 8, 13, 21, 34, 55, ...longDelaysMs.slice(3)];
/**
 * The delay of the relist for a hint about a started container: long enough that the relist after
 * the pod's start makes it unnecessary.
 */
const startedDelayMs = 50;
const unknownStartedDelayMs = 15_000;
/** A terminating pod is relisted when all containers have stopped; until then, relists are rare. */
const endedDelayMs = 1_000;
/**
 * The delay of the relist for a hint that another hint usually follows within tens of milliseconds;
 * this relist is needed only when the other hint is lost.
 */
const otherHintDelayMs = 200;
/**
 * The delay of the relist for a hint about a removal: the relist is not urgent, and the sandbox is
 * removed right after its containers.
 */
const removedDelayMs = 250;
const relistTries = 3;
const maxHints = 1_000;
const firstDelaysMs: Partial<Record<RuntimeHint['what'], number>> = {
  started: startedDelayMs,
  removed: removedDelayMs,
};
/**
 * Announced states for which the pod is relisted until the runtime lists them, in the order of a
 * container's life. A created container needs no relist.
 */
const showing: ReadonlySet<RuntimeHint['what']> = new Set(['started', 'stopped', 'removed'] as const);
const order = [...showing];

/**
 * Converts hints to relists, and repeats them until the announced change is listed or the attempts
 * are used up.
 */
export class HintFollower {
  readonly #deps: HintFollowerDeps;
  readonly #byPod = new Map<PodUid, Map<string, FollowedHint>>();
  readonly #unknown = new Map<string, FollowedHint>();
  /** The IDs of containers that other programs created and that belong to no pod. */
  readonly #foreign = new LruMap<string, true>({ capacity: maxHints });

  constructor(deps: HintFollowerDeps) {
    this.#deps = deps;
  }

  /** The number of hints whose announced change was not listed yet. */
  get size(): number {
    return this.#byPod.size + this.#unknown.size;
  }

  received({ containerId, podUid, what, shows }: RuntimeHint): void {
    if (!showing.has(what)) return;
    const hint = { what, tries: 0, delaysMs: shows === 'any-moment' ? shortDelaysMs : longDelaysMs };
    const uid = podUid ?? this.#deps.records.ownerOf(containerId);
    if (uid !== undefined) {
      if (this.#isShown(uid, containerId, what)) return;
      this.#follow(uid, containerId, hint);
      this.#relistPod(uid, shows === 'after-another-hint' ? otherHintDelayMs : (firstDelaysMs[what] ?? 0));
    } else if (!this.#foreign.has(containerId) && this.#unknown.size < maxHints) {
      const before = this.#unknown.get(containerId);
      this.#unknown.set(containerId, later(before, { ...hint, tries: before?.tries ?? 0 }));
      this.#deps.relist(what === 'started' ? unknownStartedDelayMs : 0);
    }
  }

  /** The number of containers with a hint for which no pod was found yet. */
  get unknown(): number {
    return this.#unknown.size;
  }

  /** Called after a pod was relisted. */
  observed(uid: PodUid): void {
    const states = new Map(itemsOf(this.#deps.records.get(uid)?.listed).map(({ id, state }) => [id, state]));
    this.#claim(uid, states.keys());
    const hints = this.#byPod.get(uid);
    if (hints === undefined) return;
    let nextMs: number | undefined;
    for (const [id, hint] of [...hints]) {
      const { what, tries, delaysMs } = hint;
      const delayMs = isSettled(what, states.get(id)) ? undefined : delaysMs[tries];
      if (delayMs === undefined) hints.delete(id);
      else hints.set(id, { ...hint, tries: tries + 1 });
      nextMs = Math.min(delayMs ?? Number.POSITIVE_INFINITY, nextMs ?? Number.POSITIVE_INFINITY);
    }
    if (hints.size === 0) this.#byPod.delete(uid);
    else if (nextMs !== undefined) this.#relistPod(uid, nextMs);
  }

  isFollowing(uid: PodUid): boolean {
    return this.#byPod.has(uid);
  }

  /** Called after all pods were relisted. */
  relisted(): void {
    for (const id of [...this.#unknown.keys()]) {
      const uid = this.#deps.records.ownerOf(id);
      if (uid !== undefined) this.#claim(uid, [id]);
    }
    for (const uid of [...this.#byPod.keys()]) this.observed(uid);
    for (const [id, hint] of [...this.#unknown]) this.#stillUnknown(id, hint);
  }

  clear(): void {
    this.#byPod.clear();
    this.#unknown.clear();
  }

  /**
   * Whether the listed state is the announced one or a later one, so that no further relist is
   * needed.
   */
  #isShown(uid: PodUid, containerId: string, what: RuntimeHint['what']): boolean {
    const listed = itemsOf(this.#deps.records.get(uid)?.listed);
    const state = listed.find(({ id }) => id === containerId)?.state;
    return state !== undefined && isSettled(what, state);
  }

  #relistPod(uid: PodUid, delayMs: number): void {
    this.#deps.relistPod(uid, this.#deps.isTerminating(uid) ? Math.max(delayMs, endedDelayMs) : delayMs);
  }

  #follow(uid: PodUid, id: string, hint: FollowedHint): void {
    const hints = this.#byPod.get(uid) ?? new Map<string, FollowedHint>();
    hints.set(id, later(hints.get(id), hint));
    this.#byPod.set(uid, hints);
  }

  /** Assigns the hints of containers to the pod that turned out to own them. */
  #claim(uid: PodUid, ids: Iterable<string>): void {
    for (const id of ids) {
      const hint = this.#unknown.get(id);
      if (hint === undefined) continue;
      this.#unknown.delete(id);
      this.#follow(uid, id, hint);
    }
  }

  #stillUnknown(id: string, hint: FollowedHint): void {
    const { what, tries } = hint;
    const over = what === 'stopped' || what === 'removed';
    if (over || tries + 1 >= relistTries) {
      this.#unknown.delete(id);
      this.#foreign.set(id, true);
      return;
    }
    this.#unknown.set(id, { ...hint, tries: tries + 1 });
    this.#deps.relist(0);
  }
}

/** Events may arrive out of order; the latest state in a container's life is kept. */
function later(before: FollowedHint | undefined, hint: FollowedHint): FollowedHint {
  return before !== undefined && order.indexOf(before.what) > order.indexOf(hint.what) ? before : hint;
}

function isSettled(what: RuntimeHint['what'], state: ObservedContainerState | undefined): boolean {
  switch (what) {
    case 'started':
      return state === 'running' || state === 'exited';
    case 'stopped':
      return state === 'exited' || state === undefined;
    case 'removed':
      return state === undefined;
    default:
      return true;
  }
}
