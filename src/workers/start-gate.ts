import type { PodFullName, PodUid } from '../pods/index.ts';

/**
 * Lets one static pod of a name run at a time, in the order they came. Pods of the API pass without asking: their
 * names are kept apart by the API server, and a force-deleted one may overlap with its successor.
 */
export class StartGate {
  readonly #holders = new Map<PodFullName, PodUid>();
  /** In the order they came; a Set, as a name edited often has a long line that is left from anywhere. */
  readonly #lines = new Map<PodFullName, Set<PodUid>>();

  /** How many names are held or waited for. */
  get size(): number {
    return new Set([...this.#holders.keys(), ...this.#lines.keys()]).size;
  }

  holder(name: PodFullName): PodUid | undefined {
    return this.#holders.get(name);
  }

  join(name: PodFullName, uid: PodUid): void {
    const line = this.#lines.get(name) ?? new Set();
    line.add(uid);
    this.#lines.set(name, line);
  }

  /** Whether the pod may start, which makes it the holder of the name. */
  tryPass(name: PodFullName, uid: PodUid): boolean {
    const holder = this.#holders.get(name);
    if (holder !== undefined) return holder === uid;
    if (this.#next(name) !== uid) return false;
    this.#leaveLine(name, uid);
    this.#holders.set(name, uid);
    return true;
  }

  /** The pod neither holds nor wants the name any more. Answers who may start because of that. */
  leave(name: PodFullName, uid: PodUid): PodUid | undefined {
    const wasNext = this.#next(name) === uid;
    this.#leaveLine(name, uid);
    const wasHolder = this.#holders.get(name) === uid && this.#holders.delete(name);
    return (wasHolder || wasNext) && !this.#holders.has(name) ? this.#next(name) : undefined;
  }

  #next(name: PodFullName): PodUid | undefined {
    return this.#lines.get(name)?.values().next().value;
  }

  #leaveLine(name: PodFullName, uid: PodUid): void {
    const line = this.#lines.get(name);
    line?.delete(uid);
    if (line?.size === 0) this.#lines.delete(name);
  }
}
