import type { PodStatus } from '../kinds/index.ts';
import { type Clock, type Instant, KubelingError, LinkedController } from '../lib/index.ts';
import type { Pod } from './pod.ts';

/** Counted from the pod's start on this node; a pod that has not started has no deadline yet. */
export function isPastDeadline(pod: Pod, status: PodStatus | undefined, now: Instant): boolean {
  return (msToDeadline(pod, status, now) ?? Number.POSITIVE_INFINITY) <= 0;
}

/** undefined for a pod that may be active for as long as it wants. */
function msToDeadline(
  { spec: { activeDeadlineSeconds } }: Pod,
  status: PodStatus | undefined,
  now: Instant,
): number | undefined {
  if (activeDeadlineSeconds === undefined || status?.startTime === undefined) return undefined;
  return Date.parse(status.startTime) + activeDeadlineSeconds * 1_000 - now;
}

/**
 * Gives the work up when the pod's time is over: a hook that hangs must not keep the pod alive. Settles when the work
 * has ended, so it must listen to its signal.
 */
export async function beforeDeadline<T>(
  clock: Clock,
  pod: Pod,
  status: PodStatus,
  work: (signal: AbortSignal) => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  const ms = msToDeadline(pod, status, clock.now());
  if (ms === undefined) return await work(signal);
  using controller = new LinkedController(signal);
  using _timer = clock.timer(Math.max(0, ms), () => {
    const details = { retryAtMs: clock.monotonicMs() };
    controller.abort(new KubelingError('CANCELLED', 'The time of the pod is over', { details }));
  });
  return await work(controller.signal);
}
