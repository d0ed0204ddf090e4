import { isOlderVersion } from '../api/index.ts';
import type { Node } from '../kinds/index.ts';
import type { Clock } from '../lib/index.ts';

/** Our Node as a watch of it sees it: late, but without asking. Undefined while it is not there or not known yet. */
export interface NodeSource {
  current(): Node | undefined;
}

/** How long an answer is believed that the watch does not confirm. */
const trustedForMs = 30_000;

/**
 * The newest that is known of our Node: what the watch says, or what the API server answered to us if that is newer.
 * Shared by all who need the Node, so that nobody asks for it.
 */
export class NodeView implements NodeSource {
  readonly #watched: NodeSource;
  readonly #clock: Clock;
  #cached: Node | undefined;
  #cachedMs = 0;
  /** Of the last Node the watch showed: one that it showed and no longer shows is gone. */
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

  /** The API server told us how the Node is. */
  update(node: Node): void {
    this.#cached = node;
    this.#cachedMs = this.#clock.monotonicMs();
  }

  /** The watch should have caught up with the last answer long ago: the Node may be gone without our knowing. */
  isStale(): boolean {
    const isBelieved = this.current() !== undefined && this.#cached !== undefined;
    return isBelieved && this.#clock.monotonicMs() - this.#cachedMs >= trustedForMs;
  }

  /** The API server told us that there is none. */
  deleted(): void {
    this.#cached = undefined;
  }
}

/** Versions that are no numbers cannot be compared: then what is watched is believed. */
function isOlder(one: Node, other: Node): boolean {
  return isOlderVersion(one.metadata?.resourceVersion ?? '', other.metadata?.resourceVersion ?? '');
}
