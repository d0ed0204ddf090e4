import type { Container } from '../../kinds/index.ts';
import { type BackoffState, formatDurationMs, KeyedBackoff, LruMap, type Random } from '../../lib/index.ts';
import {
  describePod,
  type ObservedContainer,
  type ObservedPod,
  type Pod,
  type PodUid,
} from '../../pods/index.ts';

export interface CrashBackoffOptions {
  readonly random: Random;
  /** The longest wait between restarts, 1 s to 300 s; below the first wait it becomes that too. 300 s unless given. */
  readonly maxMs?: number;
  /** The first wait; 10 s unless given. */
  readonly baseMs?: number;
  /** A container that ran longer than this starts anew with the first wait; ten minutes unless given. */
  readonly resetAfterMs?: number;
  /** Whether a container that ended with 0 waits as well; it does unless told otherwise. */
  readonly cleanExits?: 'wait' | 'restart-at-once';
  /** Told all there is on a pod when that changes; a container starts again only when the answer has settled. */
  readonly persist?: (uid: PodUid, entries: readonly (readonly [string, BackoffState])[]) => Promise<void>;
}

const maxCachedExits = 1_000;

/** The same moment on both clocks. */
export interface Moment {
  readonly nowMs: number;
  readonly monotonicMs: number;
}

export type RestartDelay =
  | { readonly kind: 'go' }
  | {
      readonly kind: 'wait';
      /** The whole delay in force, as shown to users. */
      readonly delayMs: number;
      /** What is left of it. */
      readonly waitMs: number;
      /** When it may start, on the clock of the runtime's times. */
      readonly untilMs: number;
      /** For the waiting state CrashLoopBackOff. */
      readonly message: string;
      /** For the event BackOff. */
      readonly eventMessage: string;
    };

/**
 * How long a container that ended waits before it is started again: the first time not at all, then 10 s and double
 * each time. The runtime tells ends of containers in wall time; once an end was seen the monotonic clock counts, so that
 * nobody waits longer or shorter because the other was set.
 */
export class CrashBackoff {
  readonly #backoff: KeyedBackoff;
  readonly #maxMs: number;
  readonly #cleanExits: 'wait' | 'restart-at-once';
  readonly #persist: CrashBackoffOptions['persist'];
  /** When each container that waits has ended, by the monotonic clock; `finishedAtNs` tells its ends apart. */
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

  /** Whether the container may start now. Changes nothing: say `noteRestart` when it is really started. */
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

  /** Notes that the container is started once more: the next end of it waits longer. Settles when that is kept. */
  async recordRestart(pod: Pod, container: Container, observed: ObservedPod, nowMs: number): Promise<void> {
    const ended = this.#lastExit(container, observed);
    if (ended === undefined) return;
    const key = crashBackoffKey(pod, container);
    this.#backoff.fail(key, { nowMs, eventMs: exitMs(ended, nowMs) });
    this.#exits.delete(key);
    await this.#persist?.(pod.metadata.uid, this.#entriesOf(pod));
  }

  /**
   * Forgets what was quiet for so long that it starts anew; answers how many. Call it now and then. One that ended just
   * before that time was over may still wait.
   */
  collect(nowMs: number): number {
    return this.#backoff.collect(nowMs - this.#maxMs);
  }

  /**
   * Takes over what `keep` was told before, so that a restart of the kubelet is no way around a wait. Whatever the
   * clock and the settings have become since, nobody waits longer than the longest wait.
   */
  restore(entries: Iterable<readonly [string, BackoffState]>, nowMs: number): void {
    for (const [key, { failures, delayMs, lastMs }] of entries)
      this.#backoff.restore([
        [key, { failures, delayMs: Math.min(delayMs, this.#maxMs), lastMs: Math.min(lastMs, nowMs) }],
      ]);
    this.collect(nowMs);
  }

  /** A pod that comes back under the same uid is another one: it begins anew. */
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
    const ended = observed.containers.find((seen) => seen.name === name && seen.state === 'exited');
    return ended?.exitCode === 0 && this.#cleanExits === 'restart-at-once' ? undefined : ended;
  }
}

/** No later than now: the clock may have been set back behind it. */
function exitMs({ finishedAtNs }: ObservedContainer, nowMs: number): number {
  return Math.min(Number(finishedAtNs / 1_000_000n), nowMs);
}

/** A change of image or resources may be the cure, so it makes another key that has not failed yet. */
export function crashBackoffKey(pod: Pod, { name, image = '', resources }: Container): string {
  const amounts = [resources?.requests, resources?.limits].map((list) => Object.entries(list ?? {}).sort());
  return `${keyPrefix(pod)}${JSON.stringify([name, image, amounts])}`;
}

/** Of all containers of the pod. */
function keyPrefix({ metadata: { namespace, name, uid } }: Pod): string {
  return JSON.stringify([namespace, name, uid]);
}

/** No part of how a pod is called has a bracket in it. */
function uidOfKey(key: string): unknown {
  return (JSON.parse(key.slice(0, key.indexOf(']') + 1)) as readonly unknown[])[2];
}
