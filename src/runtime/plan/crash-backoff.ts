import type { Container } from '../../kinds/index.ts';
import { type BackoffState, formatDurationMs, KeyedBackoff, LruMap, type Random } from '../../lib/index.ts';
import {
  allNamed,
  describePod,
  type ObservedContainer,
  type ObservedPod,
  type Pod,
  type PodUid,
} from '../../pods/index.ts';

export interface CrashBackoffOptions {
  readonly random: Random;
  /**
   * Maximum delay between restarts of a container, 1 s to 300 s, default 300 s; also limits the
   * first delay.
   */
  readonly maxMs?: number;
  /** Delay of the first delayed restart; default 10 s. */
  readonly baseMs?: number;
  /**
   * A container that ran longer than this time restarts without delay, and after its next crash the
   * back-off starts again with the first delay; default ten minutes.
   */
  readonly resetAfterMs?: number;
  /** Whether a container that exited with code 0 is delayed like a failed one; default `wait`. */
  readonly cleanExits?: 'wait' | 'restart-at-once';
  /**
   * Persists all back-off entries of a pod; the container is started after the promise settled.
   */
  readonly persist?: (uid: PodUid, entries: readonly (readonly [string, BackoffState])[]) => Promise<void>;
}

const maxCachedExits = 1_000;

/** One point in time on the wall clock and on the monotonic clock. */
export interface Moment {
  readonly nowMs: number;
  readonly monotonicMs: number;
}

export type RestartDelay =
  | { readonly kind: 'go' }
  | {
      readonly kind: 'wait';
      /** Complete length of the current back-off delay, which is shown to users. */
      readonly delayMs: number;
      /** Remaining part of the back-off delay. */
      readonly waitMs: number;
      /**
       * Wall-clock time at which the container may start; timestamps of the runtime use the same
       * clock.
       */
      readonly untilMs: number;
      /** Message of the waiting state CrashLoopBackOff. */
      readonly message: string;
      /** Message of the BackOff event. */
      readonly eventMessage: string;
    };

/**
 * CrashLoopBackOff delays: the first restart is immediate, the next after 10 s, then the delay
 * doubles. Exit times from the runtime are wall time; once an exit was observed the monotonic clock
 * counts, so that setting the clock changes no delay.
 */
export class CrashBackoff {
  readonly #backoff: KeyedBackoff;
  readonly #maxMs: number;
  readonly #cleanExits: 'wait' | 'restart-at-once';
  readonly #persist: CrashBackoffOptions['persist'];
  /**
   * For each container in back-off, the monotonic time at which its last exit was observed;
   * `finishedAtNs` identifies that exit.
   */
  readonly #exits = new LruMap<string, { readonly finishedAtNs: bigint; readonly atMs: number }>({
    capacity: maxCachedExits,
  });

  constructor(options: CrashBackoffOptions) {
    const maxMs = options.maxMs ?? 300_000;
    this.#backoff = new KeyedBackoff({
      policy: {
        baseMs: Math.min(options.baseMs ?? 10_000, maxMs),
        maxMs,
        resetAfterMs: options.resetAfterMs ?? 600_000,
      },
      random: options.random,
    });
    this.#maxMs = maxMs;
    this.#cleanExits = options.cleanExits ?? 'wait';
    this.#persist = options.persist;
  }

  get size(): number {
    return this.#backoff.size;
  }

  /**
   * Returns whether the container may start now. Changes no state: call `recordRestart` when the
   * container is started.
   */
  restartDelay(pod: Pod, container: Container, observed: ObservedPod, at: Moment): RestartDelay {
    const ended = this.#lastExit(container, observed);
    if (ended === undefined) return { kind: 'go' };
    const key = crashBackoffKey(pod, container);
    const eventMs = exitMs(ended, at.nowMs);
    const delayMs = this.#backoff.remainingMs(key, { nowMs: eventMs, eventMs });
    const waitMs = delayMs - (at.monotonicMs - this.#exitedAt(key, ended, at));
    if (waitMs <= 0) return { kind: 'go' };
    const whom = describePod(pod);
    return {
      kind: 'wait',
      delayMs,
      waitMs,
      untilMs: at.nowMs + waitMs,
      message: `back-off ${formatDurationMs(delayMs)} restarting failed container=${container.name} pod=${whom}`,
      eventMessage: `Back-off restarting failed container ${container.name} in pod ${whom}`,
    };
  }

  /**
   * Records a restart, so that the next exit has a longer delay. Resolves when the record is
   * persisted.
   */
  async recordRestart(pod: Pod, container: Container, observed: ObservedPod, nowMs: number): Promise<void> {
    const ended = this.#lastExit(container, observed);
    if (ended === undefined) return;
    const key = crashBackoffKey(pod, container);
    this.#backoff.fail(key, { nowMs, eventMs: exitMs(ended, nowMs) });
    this.#exits.delete(key);
    await this.#persist?.(pod.metadata.uid, this.#entriesOf(pod));
  }

  /**
   * Removes entries that were idle for the reset time plus the maximum delay, because until then a
   * delay may still be running. Returns the number of removed entries. Called periodically.
   */
  collect(nowMs: number): number {
    return this.#backoff.collect(nowMs - this.#maxMs);
  }

  /**
   * Restores persisted back-off entries, so that a kubelet restart does not skip a delay. Delays
   * are limited to the current maximum.
   */
  restore(entries: Iterable<readonly [string, BackoffState]>, nowMs: number): void {
    for (const [key, { failures, delayMs, lastMs }] of entries)
      this.#backoff.restore([
        [key, { failures, delayMs: Math.min(delayMs, this.#maxMs), lastMs: Math.min(lastMs, nowMs) }],
      ]);
    this.collect(nowMs);
  }

  /**
   * Drops the back-off entries of a deleted pod, so that a new pod with the same UID does not
   * inherit them.
   */
  forgetPod(uid: PodUid): void {
    for (const [key] of this.#backoff.entries()) if (uidOfKey(key) === uid) this.#backoff.delete(key);
    for (const [key] of [...this.#exits]) if (uidOfKey(key) === uid) this.#exits.delete(key);
  }

  #entriesOf(pod: Pod): readonly (readonly [string, BackoffState])[] {
    const start = keyPrefix(pod);
    return this.#backoff.entries().filter(([key]) => key.startsWith(start));
  }

  #exitedAt(key: string, ended: ObservedContainer, { nowMs, monotonicMs }: Moment): number {
    const { finishedAtNs } = ended;
    const known = this.#exits.get(key);
    if (known?.finishedAtNs === finishedAtNs) return known.atMs;
    const atMs = monotonicMs - (nowMs - exitMs(ended, nowMs));
    this.#exits.set(key, { finishedAtNs, atMs });
    return atMs;
  }

  #lastExit({ name }: Container, observed: ObservedPod): ObservedContainer | undefined {
    const ended = allNamed(observed.containers, name).find(({ state }) => state === 'exited');
    return ended?.exitCode === 0 && this.#cleanExits === 'restart-at-once' ? undefined : ended;
  }
}

/** The exit time is limited to the current time, because the clock may have been set back. */
function exitMs({ finishedAtNs }: ObservedContainer, nowMs: number): number {
  return Math.min(Number(finishedAtNs / 1_000_000n), nowMs);
}

/**
 * A changed image or changed resources may fix the crash, so they give a new back-off key without
 * failures.
 */
export function crashBackoffKey(pod: Pod, { name, image = '', resources }: Container): string {
  const amounts = [resources?.requests, resources?.limits].map((list) => Object.entries(list ?? {}).sort());
  return `${keyPrefix(pod)}${JSON.stringify([name, image, amounts])}`;
}

/** Prefix of the back-off keys of all containers of the pod. */
function keyPrefix({ metadata: { namespace, name, uid } }: Pod): string {
  return JSON.stringify([namespace, name, uid]);
}

/** The UID is parsed from the brackets of the key: namespace, name and UID contain none. */
function uidOfKey(key: string): unknown {
  return (JSON.parse(key.slice(0, key.indexOf(']') + 1)) as readonly unknown[])[2];
}
