import { isOlderVersion } from '../api/index.ts';
import type { Node } from '../kinds/index.ts';
import type { Clock } from '../lib/index.ts';

/**
 * The Node object as delivered by a watch: delayed, but without requests. Undefined while the Node
 * is missing or was not delivered yet.
 */
export interface NodeSource {
  current(): Node | undefined;
}

/** How long a response is used without confirmation by the watch. */
const trustedForMs = 30_000;

/**
 * The newest version of the Node: from the watch, or from a newer response of the API server.
 * Shared by all parts of the package, so that the Node is not read repeatedly.
 */
export class NodeView implements NodeSource {
  readonly #watched: NodeSource;
  readonly #clock: Clock;
  #cached: Node | undefined;
  #cachedMs = 0;
  /**
   * The UID of the Node that the watch delivered last: when the watch no longer has it, the Node is
   * deleted.
   */
  #watchedUid: string | undefined;

  constructor(watched: NodeSource, clock: Clock) {
    this.#watched = watched;
    this.#clock = clock;
  }

  current(): Node | undefined {
    const watched = this.#watched.current();
    if (watched === undefined) {
      if (this.#cached?.metadata?.uid === this.#watchedUid) this.#cached = undefined;
      return this.#cached;
    }
    this.#watchedUid = watched.metadata?.uid;
    if (this.#cached !== undefined && !isOlder(watched, this.#cached)) this.#cached = undefined;
    return this.#cached ?? watched;
  }

  /** Records the Node from a response of the API server. */
  update(node: Node): void {
    this.#cached = node;
    this.#cachedMs = this.#clock.monotonicMs();
  }

  /**
   * Whether the watch has not caught up with the last response in time: the Node may be deleted.
   */
  isStale(): boolean {
    const isBelieved = this.current() !== undefined && this.#cached !== undefined;
    return isBelieved && this.#clock.monotonicMs() - this.#cachedMs >= trustedForMs;
  }

  /** Records that the API server responded with 404. */
  deleted(): void {
    this.#cached = undefined;
  }
}

/** Resource versions that are no numbers cannot be compared: then the watch is preferred. */
function isOlder(one: Node, other: Node): boolean {
  return isOlderVersion(one.metadata?.resourceVersion ?? '', other.metadata?.resourceVersion ?? '');
}
