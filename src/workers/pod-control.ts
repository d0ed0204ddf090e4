import { type Clock, isKind, KubelingError, type Logger, TypedEvents, withDeadline } from '../lib/index.ts';
import { describePod, type Pod, type PodJournal } from '../pods/index.ts';
import type { StatusFn, UpdatePodOptions } from './updates.ts';

export interface PodControlDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly journal: Pick<PodJournal, 'event'>;
}

export interface KillNowOptions {
  readonly why: 'eviction' | 'other';
  readonly graceOverrideSeconds?: number | undefined;
  readonly statusFn?: StatusFn | undefined;
}

const shortestWaitMs = 10_000;
/**
 * The factor by which callers wait longer than the grace period, because termination takes
 * additional time.
 */
const waitFactor = 1.5;

/**
 * Passes updates to the pod workers that do not come from the sync loop: for pods killed by
 * eviction, preemption and node shutdown, and for pods whose resize was allocated. These updates
 * must not wait for the sync loop, which pauses while the runtime is not ready. This object is
 * created before the workers, which subscribe to it; an update takes effect before `updatePod`
 * returns.
 */
export class PodControl {
  readonly #deps: PodControlDeps;
  readonly #events: TypedEvents<{ readonly update: UpdatePodOptions }>;

  constructor(deps: PodControlDeps) {
    this.#deps = deps;
    this.#events = new TypedEvents((error) => deps.logger.error('Failed to update pod worker', error));
  }

  onUpdate(listener: (options: UpdatePodOptions) => void): Disposable {
    return this.#events.on('update', listener);
  }

  updatePod(options: UpdatePodOptions): void {
    this.#events.emit('update', options);
  }

  /**
   * Kills the pod and waits until no container of it runs. Rejects after 1.5 times its grace
   * period, or when the signal is aborted; the kill continues in both cases.
   */
  async killPodNow(pod: Pod, options: KillNowOptions, signal: AbortSignal): Promise<void> {
    const { clock, journal } = this.#deps;
    const { graceOverrideSeconds, statusFn } = options;
    const graceSeconds = graceOverrideSeconds ?? pod.spec.terminationGracePeriodSeconds ?? 0;
    const ms = Math.max(shortestWaitMs, waitFactor * graceSeconds * 1_000);
    const stopped = new Promise<void>((done) => {
      const kill = { evict: options.why === 'eviction', statusFn, graceOverrideSeconds, done };
      this.updatePod({ updateType: 'kill', pod, kill });
    });
    try {
      await withDeadline({ clock, ms, what: 'stop a pod' }, () => stopped, signal);
    } catch (error) {
      if (!isKind(error, 'DeadlineExceeded')) throw error;
      const message = `The pod was not stopped within ${ms / 1_000} s, though its grace period is ${graceSeconds} s.`;
      journal.event(pod, { type: 'Warning', reason: 'ExceededGracePeriod', message });
      throw new KubelingError('POD_KILL_TIMEOUT', `Cannot stop the pod ${describePod(pod)} in time`, {
        cause: error,
        details: { graceSeconds, waitedMs: ms },
      });
    }
  }
}
