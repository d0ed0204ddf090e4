import type { PodFullName, PodUid } from '../pods/index.ts';

/**
 * Lets only one static pod with the same full name run at a time, in the order in which they were
 * added. API pods always pass: the API server keeps their names unique, and a force-deleted pod may
 * overlap with its successor.
 */
export class StartGate {
  readonly #holders = new Map<PodFullName, PodUid>();
  /**
   * The waiting pods of each full name, in the order in which they were added. A Set, because a
   * static pod that is edited often has many waiting versions, which are removed in any order.
   */
  readonly #waiting = new Map<PodFullName, Set<PodUid>>();

  /** The number of full names that a pod holds or waits for. */
  get size(): number {
    return new Set([...this.#holders.keys(), ...this.#waiting.keys()]).size;
  }

  holder(name: PodFullName): PodUid | undefined {
    return this.#holders.get(name);
  }

  join(name: PodFullName, uid: PodUid): void {
    const line = this.#waiting.get(name) ?? new Set();
    line.add(uid);
    this.#waiting.set(name, line);
  }

  /** Returns whether the pod may start; if so, the pod holds its full name afterwards. */
  tryPass(name: PodFullName, uid: PodUid): boolean {
    const holder = this.#holders.get(name);
    if (holder !== undefined) return holder === uid;
    if (this.#next(name) !== uid) return false;
    this.#leaveQueue(name, uid);
    this.#holders.set(name, uid);
    return true;
  }

  /** Releases the full name of the pod. Returns the waiting pod that may start now. */
  leave(name: PodFullName, uid: PodUid): PodUid | undefined {
    const wasNext = this.#next(name) === uid;
    this.#leaveQueue(name, uid);
    const wasHolder = this.#holders.get(name) === uid && this.#holders.delete(name);
    return (wasHolder || wasNext) && !this.#holders.has(name) ? this.#next(name) : undefined;
  }

  #next(name: PodFullName): PodUid | undefined {
    return this.#waiting.get(name)?.values().next().value;
  }

  #leaveQueue(name: PodFullName, uid: PodUid): void {
    const line = this.#waiting.get(name);
    line?.delete(uid);
    if (line?.size === 0) this.#waiting.delete(name);
  }
}
