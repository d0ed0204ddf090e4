import type { Container } from '../../kinds/index.ts';
import { type Clock, cancelledError, type Timer } from '../../lib/index.ts';
import type { Pod, PodUid } from '../../pods/index.ts';
import type { StartedPreStop } from '../hooks/lifecycle-hooks.ts';
import type { KillReason } from '../plan/pod-actions.ts';

export interface HookRun {
  /** Resolves when the preStop hook has ended, failed or was cancelled; never rejects. */
  readonly ended: Promise<void>;
}

/**
 * The state of one container from the first kill until it is stopped. Kills can be repeated after a
 * failure or with a shorter grace period: the deadline only moves earlier, and the preStop hook
 * runs once for all callers.
 */
export class KillRecord implements Disposable {
  readonly podUid: PodUid;
  readonly #clock: Clock;
  readonly #hookController = new AbortController();
  #deadlineMs: number;
  #hook: HookRun | undefined;
  #hookTimer: Timer | undefined;
  /** Whether the Killing event was recorded. */
  announced = false;
  /**
   * The time since a previous kubelet started the preStop hook, which is then not started again;
   * undefined when no previous kubelet has started it.
   */
  readonly hookUsedMs: number | undefined;

  constructor(podUid: PodUid, clock: Clock, graceSeconds: number, begun?: StartedPreStop) {
    this.podUid = podUid;
    this.#clock = clock;
    this.hookUsedMs = begun?.usedMs;
    const graceMs = Math.min(graceSeconds * 1_000, begun?.msLeft ?? Number.POSITIVE_INFINITY);
    this.#deadlineMs = clock.monotonicMs() + graceMs;
  }

  /** Shortens the deadline if the new grace period ends earlier; never extends it. */
  allow(graceSeconds: number): void {
    const deadlineMs = this.#clock.monotonicMs() + graceSeconds * 1_000;
    if (deadlineMs >= this.#deadlineMs) return;
    this.#deadlineMs = deadlineMs;
    if (this.#hook !== undefined) this.#armHook();
  }

  /** Returns the remaining whole seconds, rounded up; never negative. */
  get secondsLeft(): number {
    // Rounds to milliseconds first, so that a rounding error of the clock does not count as another
    // second.
    return Math.ceil(Math.round(this.msLeft) / 1_000);
  }

  get msLeft(): number {
    return Math.max(0, this.#deadlineMs - this.#clock.monotonicMs());
  }

  get hook(): HookRun | undefined {
    return this.#hook;
  }

  /**
   * Starts the preStop hook once. It is cancelled at the deadline, not when a caller stops waiting.
   */
  startHook(run: (signal: AbortSignal) => Promise<void>): HookRun {
    const done = () => this.#hookTimer?.cancel();
    this.#hook ??= { ended: run(this.#hookController.signal).then(done, done) };
    this.#armHook();
    return this.#hook;
  }

  /** Cancels a running preStop hook. */
  [Symbol.dispose](): void {
    this.#hookTimer?.cancel();
    this.#hookController.abort(cancelledError('The container is stopped'));
  }

  #armHook(): void {
    this.#hookTimer?.cancel();
    this.#hookTimer = this.#clock.timer(this.msLeft, () =>
      this.#hookController.abort(cancelledError('The hook exceeded the grace period')),
    );
  }
}

/** The minimum grace period, so that a container that exits promptly is not killed. */
export const minimumGraceSeconds = 2;

/** Returns the grace period of a container if the kill does not override it. */
export function graceSecondsOf(pod: Pod, container: Container, reason: KillReason): number {
  const { deletionGracePeriodSeconds } = pod.metadata;
  if (deletionGracePeriodSeconds !== undefined) return deletionGracePeriodSeconds;
  const ofProbe = probeOf(container, reason)?.terminationGracePeriodSeconds;
  return ofProbe ?? pod.spec.terminationGracePeriodSeconds ?? minimumGraceSeconds;
}

function probeOf(container: Container, reason: KillReason): Container['livenessProbe'] {
  if (reason === 'LivenessProbe') return container.livenessProbe;
  return reason === 'StartupProbe' ? container.startupProbe : undefined;
}
