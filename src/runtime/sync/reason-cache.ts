import { LruMap } from '../../lib/index.ts';
import type { PodUid } from '../../pods/index.ts';

/** Reason and message of a waiting container. */
export interface WaitingReason {
  readonly reason: string;
  readonly message: string;
}

/** Result of the last attempt to start a container, with its name. */
export type StartOutcome = { readonly container: string } & (
  | { readonly started: true }
  | ({ readonly started: false } & WaitingReason)
);

const defaultCapacity = 1_000;

/**
 * Caches why containers failed to start, for their status: the runtime does not know containers
 * that were never created. A successful start removes the entry.
 */
export class ReasonCache {
  readonly #reasons: LruMap<string, WaitingReason>;

  constructor(capacity = defaultCapacity) {
    this.#reasons = new LruMap({ capacity });
  }

  update(uid: PodUid, outcomes: Iterable<StartOutcome>): void {
    for (const outcome of outcomes) {
      if (outcome.started) this.remove(uid, outcome.container);
      else
        this.#reasons.set(keyOf(uid, outcome.container), {
          reason: outcome.reason,
          message: outcome.message,
        });
    }
  }

  get(uid: PodUid, container: string): WaitingReason | undefined {
    return this.#reasons.get(keyOf(uid, container));
  }

  remove(uid: PodUid, container: string): void {
    this.#reasons.delete(keyOf(uid, container));
  }

  /** Removes all waiting reasons of a deleted pod. */
  forgetPod(uid: PodUid): void {
    const prefix = keyOf(uid, '');
    for (const [key] of [...this.#reasons]) if (key.startsWith(prefix)) this.#reasons.delete(key);
  }

  get size(): number {
    return this.#reasons.size;
  }
}

function keyOf(uid: PodUid, container: string): string {
  return `${uid}_${container}`;
}
