import type { Container } from '../../kinds/index.ts';
import { type Clock, cancelledError, type Timer } from '../../lib/index.ts';
import type { Pod, PodUid } from '../../pods/index.ts';
import type { StartedPreStop } from '../hooks/lifecycle-hooks.ts';
import type { KillReason } from '../plan/pod-actions.ts';

export interface HookRun {
  /** Settles when the hook ended, failed or was given up; never rejects. */
  readonly ended: Promise<void>;
}

/**
 * One container on its way out, from the first order to stop it until it is stopped. Orders may be repeated, after a
 * failure or with less time: the deadline only moves closer, and the hook runs once, whoever waits for it.
 */
export class KillRecord implements Disposable {
  readonly podUid: PodUid;
  readonly #clock: Clock;
  readonly #hookController = new AbortController();
  #deadlineMs: number;
  #hook: HookRun | undefined;
  #hookTimer: Timer | undefined;
  /** Whether users were told. */
  announced = false;
  /** How long ago an earlier kubelet began the hook, which is not begun again; undefined if none did. */
  readonly hookUsedMs: number | undefined;

  constructor(podUid: PodUid, clock: Clock, graceSeconds: number, begun?: StartedPreStop) {
    this.podUid = podUid;
    this.#clock = clock;
    this.hookUsedMs = begun?.usedMs;
    const graceMs = Math.min(graceSeconds * 1_000, begun?.msLeft ?? Number.POSITIVE_INFINITY);
    this.#deadlineMs = clock.monotonicMs() + graceMs;
  }

  /** Never later than an earlier order had it. */
  allow(graceSeconds: number): void {
    const deadlineMs = this.#clock.monotonicMs() + graceSeconds * 1_000;
    if (deadlineMs >= this.#deadlineMs) return;
    this.#deadlineMs = deadlineMs;
    if (this.#hook !== undefined) this.#armHook();
  }

  /** What is left in whole seconds: one that has begun still counts. Never negative. */
  get secondsLeft(): number {
    // The clock has fractions: what they cannot tell exactly must not count as one second more.
    return Math.ceil(Math.round(this.msLeft) / 1_000);
  }

  get msLeft(): number {
    return Math.max(0, this.#deadlineMs - this.#clock.monotonicMs());
  }

  get hook(): HookRun | undefined {
    return this.#hook;
  }

  /** Starts the hook, once. It is given up at the deadline, not when one who waits for it gives up. */
  startHook(run: (signal: AbortSignal) => Promise<void>): HookRun {
    const done = () => this.#hookTimer?.cancel();
    this.#hook ??= { ended: run(this.#hookController.signal).then(done, done) };
    this.#armHook();
    return this.#hook;
  }

  /** Ends a hook that still runs. */
  [Symbol.dispose](): void {
    this.#hookTimer?.cancel();
    this.#hookController.abort(cancelledError('The container is stopped'));
  }

  #armHook(): void {
    this.#hookTimer?.cancel();
    this.#hookTimer = this.#clock.timer(this.msLeft, () =>
      this.#hookController.abort(cancelledError('The hook has used up the grace period')),
    );
  }
}

/** No container gets less, so that one that ends at once is not killed. */
export const minimumGraceSeconds = 2;

/** How long a container may take to end, unless an override says otherwise. */
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
