import { type Clock, isKind, KubelingError, withDeadline } from '../lib/index.ts';
import { describePod, type Pod, type PodJournal } from '../pods/index.ts';
import type { PodWorkers } from './pod-workers.ts';
import type { StatusFn } from './updates.ts';

export interface KillNowDeps {
  readonly clock: Clock;
  readonly journal: Pick<PodJournal, 'event'>;
  readonly workers: Pick<PodWorkers, 'updatePod'>;
}

export interface KillNowOptions {
  readonly why: 'eviction' | 'other';
  readonly graceOverrideSeconds?: number | undefined;
  readonly statusFn?: StatusFn | undefined;
}

const shortestWaitMs = 10_000;
/** Stopping takes its time beyond the grace period itself. */
const waitFactor = 1.5;

/**
 * Kills the pod and waits until nothing of it runs. Gives up waiting after one and a half times its grace period, or
 * when the signal says so; the kill itself goes on.
 */
export async function killPodNow(
  { clock, journal, workers }: KillNowDeps,
  pod: Pod,
  options: KillNowOptions,
  signal: AbortSignal,
): Promise<void> {
  const { graceOverrideSeconds, statusFn } = options;
  const graceSeconds = graceOverrideSeconds ?? pod.spec.terminationGracePeriodSeconds ?? 0;
  const ms = Math.max(shortestWaitMs, waitFactor * graceSeconds * 1_000);
  const stopped = new Promise<void>((done) => {
    const kill = { evict: options.why === 'eviction', statusFn, graceOverrideSeconds, done };
    workers.updatePod({ updateType: 'kill', pod, kill });
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
