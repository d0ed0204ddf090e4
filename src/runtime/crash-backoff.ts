import type { Container } from '../kinds/index.ts';
import { type BackoffState, formatDurationMs, KeyedBackoff, type Random } from '../lib/index.ts';
import { describePod, type ObservedContainer, type ObservedPod, type Pod } from '../pods/index.ts';

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
 * each time. Times are wall time in milliseconds, since the runtime tells ends of containers in it.
 */
export class CrashBackoff {
  readonly #backoff: KeyedBackoff;
  readonly #cleanExits: 'wait' | 'restart-at-once';

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
    this.#cleanExits = options.cleanExits ?? 'wait';
  }

  get size(): number {
    return this.#backoff.size;
  }

  /** Whether the container may start now. Changes nothing: say `noteRestart` when it is really started. */
  restartDelay(pod: Pod, container: Container, observed: ObservedPod, nowMs: number): RestartDelay {
    const ended = this.#lastEnd(container, observed);
    if (ended === undefined) return { kind: 'go' };
    const key = crashBackoffKey(pod, container);
    const eventMs = endMs(ended);
    const waitMs = this.#backoff.waitMs(key, { nowMs, eventMs });
    if (waitMs === 0) return { kind: 'go' };
    const delayMs = this.#backoff.state(key)?.delayMs ?? waitMs;
    const whom = describePod(pod);
    return {
      kind: 'wait',
      delayMs,
      waitMs,
      untilMs: eventMs + delayMs,
      message: `back-off ${formatDurationMs(delayMs)} restarting failed container=${container.name} pod=${whom}`,
      eventMessage: `Back-off restarting failed container ${container.name} in pod ${whom}`,
    };
  }

  /** Notes that the container is started once more: the next end of it waits longer. */
  noteRestart(pod: Pod, container: Container, observed: ObservedPod, nowMs: number): void {
    const ended = this.#lastEnd(container, observed);
    if (ended === undefined) return;
    this.#backoff.fail(crashBackoffKey(pod, container), { nowMs, eventMs: endMs(ended) });
  }

  /** Forgets what was quiet for so long that it starts anew; answers how many. Call it now and then. */
  collect(nowMs: number): number {
    return this.#backoff.collect(nowMs);
  }

  /** To be kept on disk, so that a restart of the kubelet is no way around a wait. */
  entries(): [string, BackoffState][] {
    return this.#backoff.entries();
  }

  restore(entries: Iterable<readonly [string, BackoffState]>): void {
    this.#backoff.restore(entries);
  }

  #lastEnd({ name }: Container, observed: ObservedPod): ObservedContainer | undefined {
    const ended = observed.containers.find((seen) => seen.name === name && seen.state === 'exited');
    return ended?.exitCode === 0 && this.#cleanExits === 'restart-at-once' ? undefined : ended;
  }
}

function endMs({ finishedAtNs }: ObservedContainer): number {
  return Number(finishedAtNs / 1_000_000n);
}

/** A change of image or resources may be the cure, so it makes another key that has not failed yet. */
export function crashBackoffKey({ metadata }: Pod, { name, image = '', resources }: Container): string {
  const amounts = [resources?.requests, resources?.limits].map((list) => Object.entries(list ?? {}).sort());
  return JSON.stringify([metadata.namespace, metadata.name, metadata.uid, name, image, amounts]);
}
