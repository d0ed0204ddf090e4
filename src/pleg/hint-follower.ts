import { LruMap } from '../lib/index.ts';
import type { ObservedContainerState, PodUid } from '../pods/index.ts';
import { itemsOf } from './lifecycle-events.ts';
import type { PodRecords } from './pod-records.ts';
import type { RuntimeHint } from './runtime-events.ts';

export interface HintFollowerDeps {
  readonly records: PodRecords;
  /** Asks for a look at one pod within so long. */
  readonly relistPod: (uid: PodUid, delayMs: number) => void;
  /** Asks for a look at all pods within so long, unless all containers hinted at are known by then. */
  readonly relist: (delayMs: number) => void;
  /** Whether somebody ends this pod, and looks at it when that is done. */
  readonly isTerminating: (uid: PodUid) => boolean;
}

interface FollowedHint {
  readonly what: RuntimeHint['what'];
  readonly tries: number;
  readonly delaysMs: readonly number[];
}

/** A runtime may tell of an exit before it shows it; so long apart are the looks for it. */
const longDelaysMs: readonly number[] = [10, 20, 50, 100, 250, 500, 1_000, 2_000];
/** Each look is about half as late as the wait was long: a machine that is busy is not made busier by looking often. */
const shortDelaysMs: readonly number[] = [1, 2, 3, 5, 8, 13, 21, 34, 55, ...longDelaysMs.slice(3)];
/** Whoever starts a container looks at it when its pod has started: time for that, so that one look does for both. */
const startedDelayMs = 50;
const unknownStartedDelayMs = 15_000;
/** Whoever ends a pod looks at it when all has stopped. Should that take long, one look now and then is enough. */
const endedDelayMs = 1_000;
/** The other hint comes within tens of milliseconds; should it be lost, there is this look. */
const otherHintDelayMs = 200;
/** Nobody waits to see that something is gone, and a sandbox goes right after its containers. */
const removedDelayMs = 250;
const relistTries = 3;
const maxHints = 1_000;
const firstDelaysMs: Partial<Record<RuntimeHint['what'], number>> = {
  started: startedDelayMs,
  removed: removedDelayMs,
};
/** Hints at what a look would show, in the order of a container's life. Nobody acts on one that is merely created. */
const showing: ReadonlySet<RuntimeHint['what']> = new Set(['started', 'stopped', 'removed'] as const);
const order = [...showing];

/** Turns hints into looks, and looks again until what was hinted at is seen, or has been looked for often enough. */
export class HintFollower {
  readonly #deps: HintFollowerDeps;
  readonly #byPod = new Map<PodUid, Map<string, FollowedHint>>();
  readonly #unknown = new Map<string, FollowedHint>();
  /** Containers that belong to no pod, as other tools of the same runtime make them. */
  readonly #foreign = new LruMap<string, true>({ capacity: maxHints });

  constructor(deps: HintFollowerDeps) {
    this.#deps = deps;
  }

  /** How many hints are not settled yet. */
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

  /** How many containers were hinted at that belong to no pod known so far. */
  get unknown(): number {
    return this.#unknown.size;
  }

  /** The pod was looked at. */
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

  /** All pods were looked at. */
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

  /** A container's life goes one way only: what a look has shown needs no other. */
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

  /** What was hinted at before anybody knew whose it is. */
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

/** Events may come out of order; the one furthest in a container's life is the one to look for. */
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
