import { isOlderVersion } from '../api/index.ts';
import type { Node } from '../kinds/index.ts';
import type { Clock } from '../lib/index.ts';

/** The Node from a watch: late, but without requests. Undefined while it is missing or unknown. */
export interface NodeSource {
  current(): Node | undefined;
}

/** How long a response is trusted without confirmation by the watch. */
const trustedForMs = 30_000;

/**
 * The newest known Node: from the watch, or from a newer response of the API server. Shared, so
 * that the Node is not read repeatedly.
 */
export class NodeView implements NodeSource {
  readonly #watched: NodeSource;
  readonly #clock: Clock;
  #cached: Node | undefined;
  #cachedMs = 0;
  /** UID of the last watched Node: once the watch no longer has it, it is deleted. */
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

  /** Records a response of the API server with the Node. */
  update(node: Node): void {
    this.#cached = node;
    this.#cachedMs = this.#clock.monotonicMs();
  }

  /** The watch has not caught up with the last response: the Node may be deleted. */
  isStale(): boolean {
    const isBelieved = this.current() !== undefined && this.#cached !== undefined;
    return isBelieved && this.#clock.monotonicMs() - this.#cachedMs >= trustedForMs;
  }

  /** Records a 404 of the API server. */
  deleted(): void {
    this.#cached = undefined;
  }
}

/** Versions that are no numbers cannot be compared: then the watch is trusted. */
function isOlder(one: Node, other: Node): boolean {
  return isOlderVersion(one.metadata?.resourceVersion ?? '', other.metadata?.resourceVersion ?? '');
}
