import { type Clock, KeyedBackoff, type Random } from '../../lib/index.ts';
import type { PodUid } from '../../pods/index.ts';

const waits = { baseMs: 500, maxMs: 122_000, jitter: 0.2 };

export interface RenewalsDeps {
  readonly clock: Clock;
  readonly random: Random;
  /** The pod is to be looked at again, after this long at the latest. */
  readonly lookAgain: (uid: PodUid, delayMs: number) => void;
}

/** Pods that go on with old content of volumes: the new one is tried again soon at first, then ever more rarely. */
export class Renewals {
  readonly #deps: RenewalsDeps;
  readonly #backoff: KeyedBackoff<PodUid>;

  constructor(deps: RenewalsDeps) {
    this.#deps = deps;
    this.#backoff = new KeyedBackoff({ policy: waits, random: deps.random });
  }

  failed(uid: PodUid): void {
    const { clock, lookAgain } = this.#deps;
    lookAgain(uid, this.#backoff.fail(uid, { nowMs: clock.monotonicMs() }));
  }

  /** Its content is new, or nobody needs it any more. */
  forget(uid: PodUid): void {
    this.#backoff.forget(uid);
  }
}
