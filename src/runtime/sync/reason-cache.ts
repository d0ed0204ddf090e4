import { LruMap } from '../../lib/index.ts';
import type { PodUid } from '../../pods/index.ts';

/** Why a container does not run, as its waiting state shows it. */
export interface WaitingReason {
  readonly reason: string;
  readonly message: string;
}

/** What the last try to start one container came to. */
export type StartOutcome = { readonly container: string } & (
  | { readonly started: true }
  | ({ readonly started: false } & WaitingReason)
);

const defaultCapacity = 1_000;

/**
 * Remembers why containers could not be started, for their status: the runtime knows nothing of a container that was
 * never made. A start that works clears the entry.
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

  /** Nothing of the pod will be asked for any more. */
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
